#include <algorithm>

#include "codegen/families/squares.h"
#include "ir/base/ceil_div.h"
#include "ir/base/error.h"

namespace heddle::codegen {
namespace {

// The smallest extent of the axes of a square. With shorter axes, most of a square would be empty.
constexpr int64_t kShortestAxis = 16;
// CPU: the number of squares in a tile of the grid (LaunchStage::grid). It is so large that
// computing a tile costs more than starting it.
constexpr int64_t kSquaresPerTile = 4;
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
    moved.merged[i] = space.merged[order[i]];
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

// Returns how much of the squares is inside of the tensors, from 0 to 1.
double fullnessOf(const Space& space, int64_t edge) {
  double full = 1;
  for (size_t axis = space.extents.size() - 2; axis < space.extents.size(); ++axis) {
    const int64_t extent = std::max<int64_t>(space.extents[axis], 1);
    full *= static_cast<double>(extent) / static_cast<double>(edge * ceilDiv(extent, edge));
  }
  return full;
}

// Returns the edge of the squares. Small squares are better if they would be clearly fuller than
// large ones, or if there are so few large squares that multiprocessors would wait for the last
// ones. In both cases, small squares took 0.7 to 0.75 times as long as large ones on an H200. If
// vectors have one element, a thread of a large square has many vectors. Small squares then took
// 0.63 to 0.84 times as long.
int32_t edgeFor(const Space& space, int32_t vector) {
  constexpr double kGain = 1.3;
  constexpr double kTinyWork = 256, kFewSquares = 4096;  // the speed of tiny work does not matter
  constexpr int32_t kSmallEdge = kSquareEdge / 2;
  const double full = fullnessOf(space, kSquareEdge);
  const double squares =
      static_cast<double>(space.keptCount()) / (kSquareEdge * kSquareEdge * full);
  const bool are_few = squares > kTinyWork && squares < kFewSquares;
  if (vector == 1) return kSmallEdge;
  return are_few || fullnessOf(space, kSmallEdge) > kGain * full ? kSmallEdge : kSquareEdge;
}

// Returns whether a kernel of the family "loops" is faster than squares of this edge. Such a kernel
// reads an exchanged input in the order of the outputs. It reads one element of a sector, and
// returns to the same sector after `between` elements. If the L1 cache keeps the sectors until
// then, and if many lanes of the squares would be empty, loops are faster. On an H200, they took
// 0.55 times as long for an axis of 37 elements. `space` is the space of the segment.
bool loopsAreFaster(const Space& space, const Axes& axes, const Space& inside, int64_t edge) {
  constexpr double kMostFull = 0.6;
  constexpr int64_t kTinyWork = 1 << 18;  // elements; the speed of tiny work does not matter
  constexpr int64_t kSectorBytes = 32, kCachedBytes = 32 << 10;
  const auto isExchangedOutput = [&](const SpaceTensor& tensor) {
    return tensor.output && needsExchange(tensor, inside.extents.size());
  };
  if (fullnessOf(inside, edge) > kMostFull || inside.keptCount() <= kTinyWork ||
      std::ranges::any_of(inside.tensors, isExchangedOutput)) {
    return false;
  }
  int64_t between = 1;
  for (size_t axis = axes.row + 1; axis < space.extents.size(); ++axis) {
    between *= space.extents[axis];
  }
  return between * kSectorBytes <= kCachedBytes;
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

}  // namespace

bool needsExchange(const SpaceTensor& tensor, size_t rank) {
  return tensor.strides[rank - 1] > 1 && tensor.strides[rank - 2] == 1;
}

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
        std::max(powerOf(choice, "edge", kSquareEdge, edgeFor(plan.space, vectorFor(plan.space))),
                 kShortestEdge));
    if (choice == nullptr && loopsAreFaster(space, *axes, plan.space, square.edge)) {
      return std::nullopt;
    }
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

}  // namespace heddle::codegen
