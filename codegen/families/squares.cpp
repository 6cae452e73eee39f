#include "codegen/families/squares.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/base/error.h"

namespace heddle::codegen {
namespace {

// CUDA: the shared memory that a block may use without an opt-in.
constexpr int64_t kSquareSharedBytes = 48 << 10;
// CPU: the largest size of all exchanged tiles. They must stay in the L2 cache of a core.
constexpr int64_t kSquareArrayBytes = 128 << 10;
// CUDA: the largest number of operations of the body (opsOf()), which is unrolled up to 16 times.
constexpr int64_t kMostOps = 256;
// The largest number of bytes of tiles that a thread loads before it stores.
constexpr int64_t kSquareTileBytes = 128;
constexpr int64_t kElements = kSquareEdge * kSquareEdge / kSquareThreads;  // per thread and tile

class SquareWriter {
 public:
  SquareWriter(const Fusion& segment, const Analysis& analysis, const SquarePlan& plan)
      : segment_(segment),
        analysis_(analysis),
        plan_(plan),
        space_(plan.space),
        tensor_of_(tensorsOfOperands(segment, plan.space)) {
    program_.target = plan.schedule.target;
  }

  TileProgram write(const std::string& entry) {
    makeTiles();
    MapTiles map;
    map.body = body();
    loadTiles(map);
    std::vector<StoreExchanged> stores = storesOf(map);
    program_.statements.push_back(std::move(map));
    program_.statements.insert(program_.statements.end(), stores.begin(), stores.end());
    layOut(entry);
    return std::move(program_);
  }

 private:
  const SpaceTensor& tensor(size_t i) const { return space_.tensors[i]; }

  void makeTiles() {
    tile_of_.assign(segment_.values().size(), TileId());
    for (size_t i = 0; i < segment_.inputs().size(); ++i) {
      if (tensor_of_[i] < 0) continue;
      const ValueId id = segment_.inputs()[i];
      tile_of_[id] = program_.tiles.push_back({segment_.value(id).name, segment_.tensor(id).dtype});
    }
  }

  Body body() const {
    const auto leaf = [this](ValueId id) -> std::optional<Node> {
      if (!tile_of_[id].valid()) return inputNode(segment_, tensor_of_, id);
      Node node;
      node.kind = Node::Kind::Load;
      node.dtype = segment_.tensor(id).dtype;
      node.index = tile_of_[id].number();
      return node;
    };
    WrittenBody written = writeBody(segment_, analysis_, space_, segment_.outputs(), leaf);
    for (size_t i = 0; i < segment_.outputs().size(); ++i) {
      written.body.stores.push_back(
          {written.node_of[segment_.outputs()[i]], tensor_of_[segment_.inputs().size() + i]});
    }
    return std::move(written.body);
  }

  // Turns stores to exchanged outputs into map results. Returns the statements that store these.
  std::vector<StoreExchanged> storesOf(MapTiles& map) {
    std::vector<StoreExchanged> exchanged;
    std::vector<Store> direct;
    for (const Store& store : map.body.stores) {
      const SpaceTensor& to = tensor(static_cast<size_t>(store.tensor));
      if (!needsExchange(to, space_.extents.size())) {
        direct.push_back(store);
        continue;
      }
      const TileId tile =
          program_.tiles.push_back({fmt::format("y{}", exchanged.size()), to.dtype});
      map.results.push_back({store.node, tile});
      exchanged.push_back({store.tensor, tile});
    }
    map.body.stores = std::move(direct);
    return exchanged;
  }

  bool isRead(const Body& body, TileId tile) const {
    return std::any_of(body.nodes.begin(), body.nodes.end(), [&](const Node& node) {
      return node.kind == Node::Kind::Load && TileId(node.index) == tile;
    });
  }

  // Exchanged tensors are loaded first. Tensors that change along both axes get a load before the
  // map, as long as registers are left. The map itself loads all other tensors.
  void loadTiles(MapTiles& map) {
    const size_t rank = space_.extents.size();
    int64_t bytes = 0;
    for (size_t i = 0; i < segment_.inputs().size(); ++i) {
      const TileId tile = tile_of_[segment_.inputs()[i]];
      if (!tile.valid() || !isRead(map.body, tile)) continue;
      const SpaceTensor& from = tensor(static_cast<size_t>(tensor_of_[i]));
      const LoadTile load{tensor_of_[i], tile};
      bytes += kElements * sizeOf(from.dtype);
      if (needsExchange(from, rank)) {
        program_.statements.insert(program_.statements.begin(),
                                   ExchangeTile{load.tensor, load.tile, false});
      } else if (from.strides[rank - 1] != 0 && from.strides[rank - 2] != 0 &&
                 bytes <= kSquareTileBytes) {
        program_.statements.push_back(load);
      } else {
        map.loads.push_back(load);
      }
    }
  }

  void layOut(const std::string& entry) {
    const size_t rank = space_.extents.size();
    const int64_t squares = squaresOf(plan_.layout);
    std::vector<const Body*> bodies;
    for (Statement& statement : program_.statements) {
      // Only the exchanges depend on the alignment of a tensor.
      if (auto* load = std::get_if<ExchangeTile>(&statement)) {
        load->aligned = plan_.aligned[static_cast<size_t>(load->tensor)];
      } else if (auto* store = std::get_if<StoreExchanged>(&statement)) {
        store->aligned = plan_.aligned[static_cast<size_t>(store->tensor)];
      } else if (const auto* map = std::get_if<MapTiles>(&statement)) {
        bodies.push_back(&map->body);
      }
    }
    program_.frame = buildFrame({entry, plan_.schedule, space_, std::move(bodies), {}, 1});
    ArgumentLayout& args = program_.frame.args;
    program_.square = plan_.layout;
    program_.square->row_extent =
        args.addSize("row_extent", space_.extents[rank - 2],
                     {ArgumentValue::Kind::AxisExtent, 0, static_cast<int32_t>(rank - 2)});
    if (program_.target == Target::Cpp) {
      args.addSize("squares", squares, {ArgumentValue::Kind::Squares});
    }
    moveCoordinates();
  }

  // Computes the coordinates along the axes outside of the square from the variable `other`, the
  // index along all of them together. Coordinates along the axes of the square are loop variables.
  void moveCoordinates() {
    std::vector<Coordinate>& kept = program_.frame.kept;
    kept.resize(kept.size() - 2);
    IndexExpr rest = IndexExpr::variable("other", 0, program_.square->others - 1);
    for (size_t i = kept.size(); i-- > 0;) {
      if (i == 0) {
        kept[i].value = rest;
        break;
      }
      const IndexExpr count = IndexExpr::parameter("n_" + kept[i].name, space_.extents[i]);
      kept[i].value = IndexExpr::mod(rest, count);
      rest = IndexExpr::div(rest, count);
    }
  }

  const Fusion& segment_;
  const Analysis& analysis_;
  const SquarePlan& plan_;
  const Space& space_;
  const std::vector<int> tensor_of_;
  IdVector<ValueId, TileId> tile_of_;  // invalid: the value has no tile
  TileProgram program_;
};

bool fits(const TileProgram& program) {
  const bool cuda = program.target == Target::Cuda;
  int64_t bytes = 0;
  int64_t ops = 0;
  const auto exchange = [&](TileId tile) {
    const int64_t size = sizeOf(program.tiles[tile].dtype);
    bytes += cuda ? std::max<int64_t>(size, 4) * kSquareEdge * (kSquareEdge + 1)
                  : size * kSquareEdge * kSquareEdge;
  };
  for (const Statement& statement : program.statements) {
    // Only these statements of a program of squares have operations or need memory for squares.
    if (const auto* map = std::get_if<MapTiles>(&statement)) ops += opsOf(map->body);
    if (const auto* load = std::get_if<ExchangeTile>(&statement)) exchange(load->tile);
    if (const auto* store = std::get_if<StoreExchanged>(&statement)) exchange(store->tile);
  }
  if (bytes == 0) return false;
  return cuda ? bytes <= kSquareSharedBytes && ops <= kMostOps : bytes <= kSquareArrayBytes;
}

}  // namespace

std::optional<TileProgram> buildSquares(const Fusion& segment, const Analysis& analysis,
                                        const SquarePlan& plan, const std::string& entry) {
  TileProgram program = SquareWriter(segment, analysis, plan).write(entry);
  if (!fits(program)) return std::nullopt;
  verify(program);
  return program;
}

}  // namespace heddle::codegen
