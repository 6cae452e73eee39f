#include "ir/base/check.h"
#include "ir/text/declaration_rules.h"
#include "ir/text/text_pieces.h"

namespace heddle {
namespace {

MeshAxis parseMeshAxis(TokenStream& in) {
  for (MeshAxis axis : {MeshAxis::X, MeshAxis::Y, MeshAxis::Z}) {
    if (in.acceptWord(name(axis))) return axis;
  }
  in.fail("a mesh axis: x, y or z");
}

// Parses `x` or `[y, x]`.
std::vector<MeshAxis> parseMeshAxes(TokenStream& in) {
  if (!in.acceptSymbol("[")) return {parseMeshAxis(in)};
  std::vector<MeshAxis> axes;
  do {
    axes.push_back(parseMeshAxis(in));
  } while (in.acceptSymbol(","));
  if (!in.acceptSymbol("]")) in.fail("',' or ']'");
  return axes;
}

int64_t parseMeshSize(TokenStream& in) {
  if (in.acceptWord("ranks")) return DeviceMesh::kFromJob;
  Token at = in.peek();
  int64_t size = in.expectInt("the size of a mesh axis or 'ranks'");
  failIf(in, at, meshSizeViolation(size));
  return size;
}

void parseMeshAxisList(TokenStream& in, DeviceMesh& mesh) {
  in.expectSymbol("[");
  do {
    Token at = in.peek();
    MeshAxis axis = parseMeshAxis(in);
    failIf(in, at, meshAxisViolation(mesh, axis));
    in.expectSymbol("=");
    mesh.axes.push_back({axis, parseMeshSize(in)});
    failIf(in, at, jobAxesViolation(mesh));
  } while (in.acceptSymbol(","));
  if (!in.acceptSymbol("]")) in.fail("',' or ']'");
}

DeviceMesh parseMesh(TokenStream& in) {
  DeviceMesh mesh;
  Token at = in.peek();
  mesh.name = in.expectName(TokenKind::Mesh, "the name of a mesh, as in @m");
  in.expectSymbol("=");
  parseMeshAxisList(in, mesh);
  failIf(in, at, meshDevicesViolation(mesh));
  if (!in.atWord("ranks")) return mesh;
  Token ranks = in.next();
  in.expectSymbol("=");
  mesh.ranks = parseInts(in);
  failIf(in, ranks, meshRanksViolation(mesh));
  return mesh;
}

size_t parseLogicalAxis(TokenStream& in, size_t rank) {
  Token at = in.peek();
  int64_t axis = in.expectInt("an axis of the tensor");
  failIf(in, at, logicalAxisViolation(axis, rank));
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

void parseShardAxes(TokenStream& in, Sharding& sharding, MeshAxisUse& use) {
  while (in.acceptSymbol(",")) {
    Token axis_at = in.peek();
    size_t axis = parseLogicalAxis(in, sharding.axes.size());
    if (!sharding.axes[axis].empty()) {
      in.failAt(axis_at, fmt::format("axis {} is sharded twice", axis));
    }
    in.expectSymbol(":");
    Token at = in.peek();
    sharding.axes[axis] = parseMeshAxes(in);
    for (MeshAxis mesh_axis : sharding.axes[axis]) failIf(in, at, use.use(mesh_axis));
  }
  if (!in.acceptSymbol(")")) in.fail("',' or ')'");
}

void parsePartial(TokenStream& in, Sharding& sharding, MeshAxisUse& use) {
  in.expectSymbol("(");
  do {
    std::optional<ReduceOp> op =
        in.at(TokenKind::Word) ? reduceOpFromName(in.peek().text) : std::nullopt;
    if (!op) in.fail("a reduction: sum, prod, min, max or avg");
    in.next();
    in.expectSymbol(":");
    Token at = in.peek();
    for (MeshAxis axis : parseMeshAxes(in)) {
      failIf(in, at, use.use(axis));
      sharding.partial.push_back({axis, *op});
    }
  } while (in.acceptSymbol(","));
  if (!in.acceptSymbol(")")) in.fail("',' or ')'");
}

void parseStream(TokenStream& in, Sharding& sharding) {
  in.expectSymbol("(");
  auto axis = static_cast<int64_t>(parseLogicalAxis(in, sharding.axes.size()));
  in.expectSymbol(":");
  Token at = in.peek();
  int64_t chunks = in.expectInt("a number of chunks");
  failIf(in, at, chunksViolation(chunks));
  in.expectSymbol(")");
  sharding.stream = Sharding::StreamSplit{axis, chunks};
}

}  // namespace

Meshes parseMeshes(TokenStream& in) {
  Meshes meshes;
  while (in.acceptWord("mesh")) {
    Token at = in.peek();
    failIf(in, at, meshCountViolation(meshes));
    DeviceMesh mesh = parseMesh(in);
    failIf(in, at, meshNameViolation(meshes, mesh.name));
    meshes.push_back(std::move(mesh));
  }
  return meshes;
}

MeshId parseMeshRef(TokenStream& in, const Meshes& meshes) {
  if (!in.at(TokenKind::Mesh)) in.fail("a mesh, as in @m");
  Token at = in.next();
  for (MeshId id : meshes.ids()) {
    if (meshes[id].name == at.text) return id;
  }
  in.failAt(at, fmt::format("there is no mesh @{}", at.text));
}

bool atSharding(const TokenStream& in) {
  if (!in.atSymbol("(", 1)) return false;
  return in.atWord("shard") || in.atWord("partial") || in.atWord("stream");
}

Sharding parseSharding(TokenStream& in, const Meshes& meshes, size_t rank) {
  Sharding sharding;
  sharding.axes.resize(rank);
  bool named = in.atWord("shard");
  if (named) {
    in.next();
    in.expectSymbol("(");
    sharding.mesh = parseMeshRef(in, meshes);
  } else if (meshes.size() != 1) {
    in.fail("shard(@mesh), because there is not exactly one mesh");
  }
  MeshAxisUse use(meshes[sharding.mesh]);
  if (named) parseShardAxes(in, sharding, use);
  while (in.acceptWord("partial")) parsePartial(in, sharding, use);
  if (in.acceptWord("stream")) parseStream(in, sharding);
  return sharding;
}

}  // namespace heddle
