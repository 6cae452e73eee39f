#include "codegen/families/squares.h"

#include <algorithm>

#include "ir/base/ceil_div.h"
#include "ir/base/error.h"

namespace heddle::codegen {
namespace {

// The smallest extent of the axes of a square. With shorter axes, most of a square would be empty.
constexpr int64_t kShortestAxis = 16;
// CUDA: the shared memory that a block may use without an opt-in.
constexpr int64_t kSquareSharedBytes = 48 << 10;
// CPU: the largest size of all exchanged tiles. They must stay in the L2 cache of a core.
constexpr int64_t kSquareArrayBytes = 128 << 10;
// CPU: the number of squares in a tile of the grid (LaunchStage::grid). It is so large that
// computing a tile costs more than starting it.
constexpr int64_t kSquaresPerTile = 4;
// CUDA: the largest number of operations of the body (opsOf()), which is unrolled up to 16 times.
constexpr int64_t kMostOps = 256;
// The largest number of bytes of tiles that a thread loads before it stores.
constexpr int64_t kSquareTileBytes = 128;
constexpr int64_t kElements = kSquareEdge * kSquareEdge / kSquareThreads;  // per thread and tile

struct Axes {         // the axes of a square, as indices into Space::extents
  size_t column;      // outputs that are not exchanged are contiguous along this axis
  size_t row;         // exchanged tensors are contiguous along this axis
  int exchanged = 0;  // number of exchanged tensors
};

bool isContiguous(const SpaceTensor& tensor, size_t axis) { return tensor.strides[axis] == 1; }

// If the stride along `column` is above 1, returns an axis of at least kShortestAxis elements along
// which the tensor is contiguous, if there is one. Otherwise returns nullopt.
std::optional<size_t> otherAxis(const SpaceTensor& tensor, const Space& space, size_t column) {
  if (tensor.strides[column] <= 1) return std::nullopt;
  for (size_t axis = 0; axis < space.extents.size(); ++axis) {
    if (axis != column && isContiguous(tensor, axis) && space.extents[axis] >= kShortestAxis) {
      return axis;
    }
  }
  return std::nullopt;
}

// Returns the axes with `column` as Axes::column, or nullopt if squares do not suit this axis.
std::optional<Axes> axesFor(const Space& space, size_t column) {
  if (space.extents[column] < kShortestAxis) return std::nullopt;
  std::optional<size_t> row;
  int exchanged = 0;
  for (const SpaceTensor& tensor : space.tensors) {
    const std::optional<size_t> own = otherAxis(tensor, space, column);
    if (!own && tensor.output && !isContiguous(tensor, column)) return std::nullopt;
    if (!own) continue;
    if (row && *row != *own) return std::nullopt;
    row = own;
    ++exchanged;
  }
  if (!row) return std::nullopt;
  // If a tensor is not exchanged, `column` must have the shorter of its strides along both axes.
  const bool suits = std::ranges::all_of(space.tensors, [&](const SpaceTensor& tensor) {
    return tensor.strides[*row] <= 1 || tensor.strides[*row] >= tensor.strides[column];
  });
  return suits ? std::optional(Axes{column, *row, exchanged}) : std::nullopt;
}

std::optional<Axes> axesOf(const Space& space) {
  if (space.hasReduced()) return std::nullopt;
  std::optional<Axes> best;
  for (size_t column = space.extents.size(); column-- > 0;) {
    const bool needs_no_square =
        std::all_of(space.tensors.begin(), space.tensors.end(), [&](const SpaceTensor& tensor) {
          return isContiguous(tensor, column) || (!tensor.output && tensor.strides[column] == 0);
        });
    if (needs_no_square) return std::nullopt;
    const auto axes = axesFor(space, column);
    if (axes && (!best || axes->exchanged < best->exchanged)) best = axes;
  }
  return best;
}

// Makes the axes of the square the last ones: first Axes::row, then Axes::column.
Space withSquareInside(const Space& space, const Axes& axes) {
  AxisPositions order;
  for (size_t axis = 0; axis < space.extents.size(); ++axis) {
    if (axis != axes.column && axis != axes.row) order.push_back(axis);
  }
  order.insert(order.end(), {axes.row, axes.column});
  Space moved = space;
  AxisPositions position(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    position[order[i]] = i;
    moved.extents[i] = space.extents[order[i]];
    for (size_t t = 0; t < space.tensors.size(); ++t) {
      moved.tensors[t].strides[i] = space.tensors[t].strides[order[i]];
    }
  }
  for (SpaceCoordinate& coordinate : moved.coordinates) {
    const auto axis = static_cast<size_t>(coordinate.axis);
    if (coordinate.axis >= 0) coordinate.axis = static_cast<int>(position[axis]);
  }
  return moved;
}

// In the rest of this anonymous namespace, `space` is the space that withSquareInside() returns.

bool needsExchange(const SpaceTensor& tensor, size_t rank) {
  return tensor.strides[rank - 1] > 1 && tensor.strides[rank - 2] == 1;
}

// Returns whether vectors along `axis` begin at aligned addresses.
bool isAligned(const SpaceTensor& tensor, size_t axis, int64_t vector) {
  const int64_t bytes = std::min<int64_t>(vector * sizeOf(tensor.dtype), kFullAlignment);
  if (tensor.alignment % bytes != 0) return false;
  for (size_t other = 0; other < tensor.strides.size(); ++other) {
    if (other != axis && tensor.strides[other] % vector != 0) return false;
  }
  return true;
}

int32_t vectorFor(const Space& space) {
  const size_t rank = space.extents.size();
  int64_t widest = 1;
  for (const SpaceTensor& tensor : space.tensors) widest = std::max(widest, sizeOf(tensor.dtype));
  int64_t vector = std::min<int64_t>(16 / widest, 8);
  const auto suits = [&](const SpaceTensor& tensor) {
    if (needsExchange(tensor, rank)) return isAligned(tensor, rank - 2, vector);
    return !isContiguous(tensor, rank - 1) || isAligned(tensor, rank - 1, vector);
  };
  while (vector > 1 && !std::all_of(space.tensors.begin(), space.tensors.end(), suits)) vector /= 2;
  return static_cast<int32_t>(vector);
}

// Returns the edge of the squares. Small squares are better if they would be clearly fuller than
// large ones, or if there are so few large squares that multiprocessors would wait for the last
// ones. In both cases, small squares took 0.7 to 0.75 times as long as large ones on an H200.
int32_t edgeFor(const Space& space) {
  constexpr double kGain = 1.3;
  constexpr double kTinyWork = 256, kFewSquares = 4096;  // the speed of tiny work does not matter
  constexpr int32_t kSmallEdge = kSquareEdge / 2;
  const auto fullness = [&](int64_t edge) {
    double full = 1;
    for (size_t axis = space.extents.size() - 2; axis < space.extents.size(); ++axis) {
      const int64_t extent = std::max<int64_t>(space.extents[axis], 1);
      full *= static_cast<double>(extent) / static_cast<double>(edge * ceilDiv(extent, edge));
    }
    return full;
  };
  const double full = fullness(kSquareEdge);
  const double squares =
      static_cast<double>(space.keptCount()) / (kSquareEdge * kSquareEdge * full);
  const bool are_few = squares > kTinyWork && squares < kFewSquares;
  return are_few || fullness(kSmallEdge) > kGain * full ? kSmallEdge : kSquareEdge;
}

// Returns whether some rows of an exchanged tensor (its elements along Axes::row) do not begin at a
// multiple of kSector bytes. Neighbouring squares then share pieces of kSector bytes.
bool sharesSectors(const Space& space) {
  constexpr int64_t kSector = 64;  // bytes: two of the sectors that the memory of a GPU reads
  const size_t rank = space.extents.size();
  return std::any_of(space.tensors.begin(), space.tensors.end(), [&](const SpaceTensor& tensor) {
    if (!needsExchange(tensor, rank)) return false;
    for (size_t axis = 0; axis < rank; ++axis) {
      if (axis != rank - 2 && tensor.strides[axis] * sizeOf(tensor.dtype) % kSector != 0)
        return true;
    }
    return false;
  });
}

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

std::optional<SquarePlan> planSquares(const Space& space, Target target,
                                      const KernelChoice* choice) {
  if (!isFamily(choice, "squares")) choice = nullptr;
  const std::optional<Axes> axes = axesOf(space);
  if (!axes) return std::nullopt;
  SquarePlan plan;
  plan.space = withSquareInside(space, *axes);
  const size_t rank = plan.space.extents.size();
  const bool cuda = target == Target::Cuda;
  SquareLayout& square = plan.layout;
  constexpr int64_t kShortestEdge = kSquareEdge / 2;
  if (cuda) {
    square.edge = static_cast<int32_t>(
        std::max(powerOf(choice, "edge", kSquareEdge, edgeFor(plan.space)), kShortestEdge));
  }
  // A thread holds at least one vector of a tile.
  const int32_t most = square.edge * square.edge / kSquareThreads;
  Schedule& schedule = plan.schedule;
  schedule.target = target;
  schedule.lanes = cuda ? std::min(vectorFor(plan.space), most) : 1;
  schedule.lanes = static_cast<int32_t>(powerOf(choice, "vector", schedule.lanes, schedule.lanes));
  schedule.chunk = schedule.lanes;
  schedule.items_per_tile = numberOf(choice, "items_per_tile", int64_t{1} << 40, kSquaresPerTile);
  const int64_t row_extent = plan.space.extents[rank - 2];
  const int64_t column_extent = plan.space.extents.back();
  square.vector = schedule.lanes;
  square.exact = row_extent % square.vector == 0 && column_extent % square.vector == 0;
  square.full = row_extent % square.edge == 0 && column_extent % square.edge == 0;
  square.banded = cuda && sharesSectors(plan.space);
  square.rows = ceilDiv(row_extent, int64_t{square.edge});
  square.columns = ceilDiv(column_extent, int64_t{square.edge});
  for (size_t axis = 0; axis + 2 < rank; ++axis) square.others *= plan.space.extents[axis];
  for (const SpaceTensor& tensor : plan.space.tensors) {
    plan.aligned.push_back(needsExchange(tensor, rank) &&
                           isAligned(tensor, rank - 2, schedule.lanes));
  }
  return plan;
}

KernelChoice choiceOf(const SquarePlan& plan) {
  if (plan.schedule.target == Target::Cpp) {
    return {"squares", {{"items_per_tile", plan.schedule.items_per_tile}}};
  }
  return {"squares", {{"edge", plan.layout.edge}, {"vector", plan.layout.vector}}};
}

std::optional<TileProgram> buildSquares(const Fusion& segment, const Analysis& analysis,
                                        const SquarePlan& plan, const std::string& entry) {
  TileProgram program = SquareWriter(segment, analysis, plan).write(entry);
  if (!fits(program)) return std::nullopt;
  verify(program);
  return program;
}

}  // namespace heddle::codegen
