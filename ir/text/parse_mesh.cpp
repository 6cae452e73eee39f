#include <set>

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
  if (size < 1) in.failAt(at, fmt::format("a mesh axis has at least 1 device, got {}", size));
  return size;
}

// Returns the number of devices of `mesh`, or nullopt if the number depends on the size of the job.
// The check for too many devices is here, because the parser knows the line and column for the
// error.
std::optional<int64_t> deviceCount(TokenStream& in, const Token& at, const DeviceMesh& mesh) {
  std::optional<int64_t> count = knownDevices(mesh);
  if (!count) in.failAt(at, fmt::format("mesh @{} has too many devices", mesh.name));
  return mesh.sizeIsFromJob() ? std::nullopt : count;
}

void parseMeshAxisList(TokenStream& in, DeviceMesh& mesh) {
  in.expectSymbol("[");
  int from_job = 0;
  do {
    Token at = in.peek();
    MeshAxis axis = parseMeshAxis(in);
    if (mesh.axes.size() == 3 || (!mesh.axes.empty() && mesh.axes.back().axis <= axis)) {
      in.failAt(at, "mesh axes are listed as [x], [y, x] or [z, y, x], the innermost last");
    }
    in.expectSymbol("=");
    mesh.axes.push_back({axis, parseMeshSize(in)});
    from_job += mesh.axes.back().size == DeviceMesh::kFromJob;
    if (from_job > 1) in.failAt(at, "only one mesh axis can take its size from the job");
  } while (in.acceptSymbol(","));
  if (!in.acceptSymbol("]")) in.fail("',' or ']'");
}

DeviceMesh parseMesh(TokenStream& in) {
  DeviceMesh mesh;
  Token at = in.peek();
  mesh.name = in.expectName(TokenKind::Mesh, "the name of a mesh, as in @m");
  in.expectSymbol("=");
  parseMeshAxisList(in, mesh);
  std::optional<int64_t> count = deviceCount(in, at, mesh);
  if (!in.atWord("ranks")) return mesh;
  Token ranks = in.next();
  in.expectSymbol("=");
  mesh.ranks = parseInts(in);
  if (!count || static_cast<int64_t>(mesh.ranks.size()) != *count) {
    in.failAt(ranks, fmt::format("mesh @{} lists {} ranks for {} devices", mesh.name,
                                 mesh.ranks.size(), count ? fmt::to_string(*count) : "the job's"));
  }
  std::set<int64_t> seen;
  for (int64_t rank : mesh.ranks) {
    if (rank < 0) in.failAt(ranks, fmt::format("rank {} is negative", rank));
    if (!seen.insert(rank).second) in.failAt(ranks, fmt::format("rank {} is listed twice", rank));
  }
  return mesh;
}

// Checks that a sharding uses each mesh axis at most once.
class AxisUse {
 public:
  AxisUse(TokenStream& in, const DeviceMesh& mesh) : in_(in), mesh_(mesh) {}

  void take(const Token& at, MeshAxis axis) {
    if (!mesh_.has(axis)) {
      in_.failAt(at, fmt::format("mesh @{} has no axis {}", mesh_.name, name(axis)));
    }
    if (!used_.insert(axis).second) {
      in_.failAt(at, fmt::format("mesh axis {} is used twice in one sharding", name(axis)));
    }
  }

 private:
  TokenStream& in_;
  const DeviceMesh& mesh_;
  std::set<MeshAxis> used_;
};

size_t parseLogicalAxis(TokenStream& in, size_t rank) {
  Token at = in.peek();
  int64_t axis = in.expectInt("an axis of the tensor");
  int64_t wrapped = axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
  if (wrapped < 0 || wrapped >= static_cast<int64_t>(rank)) {
    in.failAt(at, fmt::format("axis {} is out of range for a tensor of rank {}", axis, rank));
  }
  return static_cast<size_t>(wrapped);
}

void parseShardAxes(TokenStream& in, Sharding& sharding, AxisUse& use) {
  while (in.acceptSymbol(",")) {
    Token axis_at = in.peek();
    size_t axis = parseLogicalAxis(in, sharding.axes.size());
    if (!sharding.axes[axis].empty()) {
      in.failAt(axis_at, fmt::format("axis {} is sharded twice", axis));
    }
    in.expectSymbol(":");
    Token at = in.peek();
    sharding.axes[axis] = parseMeshAxes(in);
    for (MeshAxis mesh_axis : sharding.axes[axis]) use.take(at, mesh_axis);
  }
  if (!in.acceptSymbol(")")) in.fail("',' or ')'");
}

void parsePartial(TokenStream& in, Sharding& sharding, AxisUse& use) {
  in.expectSymbol("(");
  do {
    std::optional<ReduceOp> op =
        in.at(TokenKind::Word) ? reduceOpFromName(in.peek().text) : std::nullopt;
    if (!op) in.fail("a reduction: sum, prod, min, max or avg");
    in.next();
    in.expectSymbol(":");
    Token at = in.peek();
    for (MeshAxis axis : parseMeshAxes(in)) {
      use.take(at, axis);
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
  if (chunks < 1) in.failAt(at, fmt::format("expected at least 1 chunk, got {}", chunks));
  in.expectSymbol(")");
  sharding.stream = Sharding::StreamSplit{axis, chunks};
}

}  // namespace

namespace {
constexpr size_t kMostMeshes = 1000;
}  // namespace

Meshes parseMeshes(TokenStream& in) {
  Meshes meshes;
  std::set<std::string> names;
  while (in.acceptWord("mesh")) {
    Token at = in.peek();
    if (meshes.size() >= kMostMeshes) {
      in.failAt(at, fmt::format("this is mesh number {}, and at most {} are allowed",
                                kMostMeshes + 1, kMostMeshes));
    }
    meshes.push_back(parseMesh(in));
    if (!names.insert(meshes.back().name).second) {
      in.failAt(at, fmt::format("mesh @{} is defined twice", meshes.back().name));
    }
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
  AxisUse use(in, meshes[sharding.mesh]);
  if (named) parseShardAxes(in, sharding, use);
  while (in.acceptWord("partial")) parsePartial(in, sharding, use);
  if (in.acceptWord("stream")) parseStream(in, sharding);
  return sharding;
}

}  // namespace heddle
