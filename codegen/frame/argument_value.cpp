#include "codegen/frame/argument_value.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "ir/base/ceil_div.h"
#include "ir/base/check.h"
#include "ir/system/streamed_bytes.h"

namespace heddle::codegen {
namespace {

// Returns the number of items along an axis. Along the lane axis, an item consists of
// Schedule::chunk neighbouring elements. Along every other axis, an item is one element.
int64_t itemsAlong(size_t axis, const FrameNumbers& numbers) {
  const int64_t extent = numbers.space.extents[axis];
  const Schedule& schedule = numbers.schedule;
  return axis == schedule.laneAxis(numbers.space) ? schedule.laneItems(extent) : extent;
}

// Returns the number of reduced items of a range, or of a part of a divided row
// (codegen/tile/divided_rows.h). The threads of a warp load neighbouring items in a CUDA inner
// reduction. A range with at least one item per thread of a warp therefore has a multiple of this
// number. If the first range begins at a line of the cache, most ranges then do.
int64_t spanOf(const Schedule& schedule, const Space& space) {
  constexpr int64_t kWarp = 32;
  const int64_t items = ceilDiv(reducedItems(schedule, space), schedule.splits);
  const bool by_warps =
      schedule.target == Target::Cuda && schedule.kind == ScheduleKind::InnerReduction;
  return by_warps && schedule.splits > 1 && items >= kWarp ? ceilDiv(items, kWarp) * kWarp : items;
}

// sum() and product() return the largest int64 if the result would be larger.
int64_t sum(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? std::numeric_limits<int64_t>::max() : result;
}

int64_t product(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<int64_t>::max() : result;
}

// Returns an upper bound of the offsets that the kernel computes for the tensor, in elements.
int64_t lastOffset(const SpaceTensor& tensor, const FrameNumbers& numbers) {
  const Schedule& schedule = numbers.schedule;
  const size_t lane_axis = schedule.laneAxis(numbers.space);
  int64_t last = product(schedule.lanes, tensor.strides[lane_axis]);
  if (tensor.isInWorkspace()) {
    last = sum(last, tensor.base);
    if (tensor.output) last = sum(last, product(schedule.splits - 1, tensor.part_stride));
  }
  for (size_t axis = 0; axis < numbers.space.extents.size(); ++axis) {
    int64_t index = std::max<int64_t>(itemsAlong(axis, numbers) - 1, 0);
    if (axis == lane_axis) index = product(index, schedule.chunk);
    last = sum(last, product(index, tensor.strides[axis]));
  }
  return last;
}

// See Access::vector_begins.
int64_t vectorBegins(const SpaceTensor& tensor, const FrameNumbers& numbers) {
  int64_t elements = 1, span = 1;
  for (size_t axis = 0; axis < tensor.strides.size(); ++axis) {
    elements = product(elements, numbers.space.extents[axis]);
    span = sum(span, product(numbers.space.extents[axis] - 1, tensor.strides[axis]));
  }
  return elements == span ? std::max<int64_t>(elements - numbers.schedule.lanes + 1, 0) : 0;
}

// Returns whether stores should bypass the caches. They should if the outputs that are contiguous
// along the lane axis are large, and if their rows along this axis consist of complete cache lines.
// At the ends of other rows, ordinary stores would write a part of a line, and the CPU would still
// read this line first.
bool streams(const FrameNumbers& numbers) {
  constexpr int64_t kLine = 64;
  const Space& space = numbers.space;
  const size_t lane_axis = numbers.schedule.laneAxis(space);
  int64_t bytes = 0;
  for (const SpaceTensor& tensor : space.tensors) {
    if (!tensor.output || tensor.isInWorkspace() || tensor.strides[lane_axis] != 1) continue;
    int64_t elements = 1;
    for (size_t axis = 0; axis < space.extents.size(); ++axis) {
      const int64_t step = axis == lane_axis ? space.extents[axis] : tensor.strides[axis];
      if (step * sizeOf(tensor.dtype) % kLine != 0 && space.extents[axis] > 1) return false;
      if (tensor.strides[axis] != 0) elements = product(elements, space.extents[axis]);
    }
    bytes = sum(bytes, product(elements, sizeOf(tensor.dtype)));
  }
  return bytes >= leastStreamedBytes();
}

}  // namespace

// See T. Granlund, P. L. Montgomery, "Division by invariant integers using multiplication", 1994.
// For 0 <= n < 2^31, n / divisor is n * factor / 2^(31 + shift), rounded down.
int64_t inverseOf(int64_t divisor) {
  const auto d = static_cast<uint64_t>(divisor);
  if (d == 0 || d >= uint64_t{1} << 31) return 0;  // the kernel does not use it
  const auto shift = static_cast<uint64_t>(std::bit_width(d - 1));
  const uint64_t factor = ((uint64_t{1} << (31 + shift)) + d - 1) / d;
  return static_cast<int64_t>(shift << 32 | factor);
}

// One case per kind. The switch has no default, so that the compiler reports a kind without a case.
int64_t valueOf(const ArgumentValue& argument, const FrameNumbers& numbers) {
  using Kind = ArgumentValue::Kind;
  const Space& space = numbers.space;
  const Schedule& schedule = numbers.schedule;
  const size_t index = argument.index;
  const size_t axis = argument.axis;
  switch (argument.kind) {
    case Kind::Late:
      return 0;
    case Kind::Other:
      break;
    case Kind::KeptItems:
      return keptItems(schedule, space);
    case Kind::ReducedItems:
      return reducedItems(schedule, space);
    case Kind::LaneExtent:
      return space.extents[schedule.laneAxis(space)];
    case Kind::Chunk:
      return schedule.chunk;
    case Kind::ItemsPerTile:
      return schedule.items_per_tile;
    case Kind::ReducedCount:
      return numbers.reduced_count;
    case Kind::Splits:
      return schedule.splits;
    case Kind::Span:
      return spanOf(schedule, space);
    case Kind::AxisItems:
      return itemsAlong(axis, numbers);
    case Kind::AxisInverse:
      return inverseOf(itemsAlong(axis, numbers));
    case Kind::Stride:
      return space.tensors[index].strides[axis];
    case Kind::Base:
      return space.tensors[index].base;
    case Kind::PartStride:
      return space.tensors[index].part_stride;
    case Kind::VectorBegins:
      return vectorBegins(space.tensors[index], numbers);
    case Kind::Offset:
      return space.coordinates[CoordinateId(index)].offset;
    case Kind::IndexedExtent:
      return space.indexed[index].extents[axis];
    case Kind::IndexedStride:
      return space.indexed[index].strides[axis];
    case Kind::IndexedOffset:
      return space.indexed[index].offsets[axis];
    case Kind::IndexedGlobal:
      return space.indexed[index].global[axis];
    case Kind::AxisExtent:
      return space.extents[axis];
    case Kind::Width:
      return space.widths[index];
    case Kind::Squares:
      return numbers.squares;
    case Kind::Streams:
      return streams(numbers) ? 1 : 0;
  }
  HEDDLE_CHECK(false, "the kind of an argument is not in the enum");
}

bool hasAlignedItems(const SpaceTensor& tensor, const FrameNumbers& numbers) {
  const int64_t lanes = numbers.schedule.lanes;
  const int64_t bytes = std::min<int64_t>(lanes * sizeOf(tensor.dtype), kFullAlignment);
  if (tensor.alignment % bytes != 0) return false;
  if (tensor.isInWorkspace() && tensor.base % lanes != 0) return false;
  if (tensor.isInWorkspace() && tensor.output && tensor.part_stride % lanes != 0) return false;
  const size_t lane_axis = numbers.schedule.laneAxis(numbers.space);
  for (size_t axis = 0; axis < tensor.strides.size(); ++axis) {
    if (axis != lane_axis && tensor.strides[axis] % lanes != 0) return false;
  }
  return true;
}

bool needsWideIndex(const FrameNumbers& numbers) {
  // With 2^30 as the limit, even the index after the last step of a grid-stride loop fits in 32
  // bits.
  const auto is_wide = [](int64_t index) { return index >= int64_t{1} << 30; };
  const Space& space = numbers.space;
  const Schedule& schedule = numbers.schedule;
  if (is_wide(keptItems(schedule, space)) || is_wide(space.extents[schedule.laneAxis(space)])) {
    return true;
  }
  if (space.hasReduced() &&
      (is_wide(reducedItems(schedule, space)) || is_wide(numbers.reduced_count))) {
    return true;
  }
  for (const SpaceCoordinate& c : space.coordinates) {
    if (is_wide(sum(c.offset, c.axis < 0 ? 1 : space.extents[c.axis]))) return true;
  }
  for (const SpaceTensor& tensor : space.tensors) {
    if (is_wide(lastOffset(tensor, numbers))) return true;
  }
  for (const IndexedTensor& tensor : space.indexed) {
    int64_t end = 0;
    for (size_t axis = 0; axis < tensor.extents.size(); ++axis) {
      if (is_wide(tensor.extents[axis])) return true;
      end = sum(end, product(tensor.extents[axis], tensor.strides[axis]));
    }
    if (is_wide(end)) return true;
  }
  return false;
}

}  // namespace heddle::codegen
