#include "codegen/plan/schedule.h"

#include <algorithm>
#include <bit>

#include "codegen/plan/schedule_cpu.h"
#include "codegen/plan/shift_columns.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

int64_t floorPowerOfTwo(int64_t n) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

// Returns the number of neighbouring elements that a thread loads or stores at once: 1 if some
// tensor has a stride above 1 along the axis, or 16 if all elements have one byte. Otherwise, it is
// the number of the largest elements that fit in 16 bytes, at most 8. Only tensors with stride 1
// count here (`only_full`: only full ones). If !any_extent, vectors are not longer than the axis.
int32_t vectorWidth(const Space& space, size_t axis, bool only_full = false,
                    bool any_extent = false) {
  int64_t widest = 1;
  bool all_bytes = true;
  for (const SpaceTensor& t : space.tensors) {
    if (t.strides[axis] > 1 && space.extents[axis] > 1) return 1;
    const bool counts = !only_full || isFull(t, space);
    if (t.strides[axis] == 1 && counts) widest = std::max(widest, sizeOf(t.dtype));
    all_bytes = all_bytes && sizeOf(t.dtype) == 1;
  }
  int64_t width = all_bytes ? 16 : std::min<int64_t>(16 / widest, 8);
  while (!any_extent && width > 1 && width > space.extents[axis]) width /= 2;
  return static_cast<int32_t>(width);
}

// Returns the number of elements that a thread of a pointwise kernel loads or stores at once. The
// element sizes of tensors that are not full (isFull()) do not count, because most of their loads
// hit a cache. If the resulting vectors would not be aligned, the sizes of all tensors count.
int32_t pointwiseWidth(const Space& space, size_t axis) {
  const int32_t width = vectorWidth(space, axis, true);
  return isAligned(space, axis, width) ? width : vectorWidth(space, axis);
}

// Returns whether the loop over the items loads the tensor. The loop of a reduction loads only
// tensors that change along the reduced axes.
bool isLoadedInLoop(const SpaceTensor& t, const Space& space) {
  if (t.output || !space.hasReduced()) return !t.output;
  return std::any_of(t.strides.begin() + static_cast<ptrdiff_t>(space.kept), t.strides.end(),
                     [](int64_t stride) { return stride != 0; });
}

// Returns how many items (1, 2 or 4) a thread loads at once: the most items that have less than
// `bytes` bytes together, but at least 1. If the loop loads more than kMany tensors, returns 1.
int32_t unrollFor(const Space& space, int32_t lanes, int64_t bytes) {
  constexpr int kMany = 6;
  int64_t loaded = 1;
  int inputs = 0;
  for (const SpaceTensor& t : space.tensors) {
    if (!isLoadedInLoop(t, space)) continue;
    loaded += sizeOf(t.dtype) * lanes;
    ++inputs;
  }
  // The operands of a `cat` are indexed tensors, and an item loads from only one of them. All
  // indexed tensors therefore count as one tensor, which has the largest elements.
  int64_t indexed = 0;
  for (const IndexedTensor& t : space.indexed) indexed = std::max(indexed, sizeOf(t.dtype) * lanes);
  loaded += indexed;
  int64_t unroll = floorPowerOfTwo(std::clamp<int64_t>(bytes / loaded, 1, 4));
  return static_cast<int32_t>(inputs > kMany ? 1 : unroll);
}

// Bytes that a thread loads at once to hide the latency of memory. Pointwise kernels without
// lookups (hasLookups()) need half.
constexpr int64_t kBytesInFlight = 64;
constexpr int64_t kPointwiseBytes = kBytesInFlight / 2;

// Returns `lanes`, or fewer if rows (elements along `axis`) are unaligned or short. A thread
// accesses the elements of an unaligned vector one by one or in pairs. With longer vectors, each
// access of a warp covers more cache lines. On an H200, kernels of 2-byte elements with 4 lanes
// took 0.69 to 0.84 times as long as with 8. If they also loaded an index per element (take), they
// took 0.77 to 1.00 times as long with 2 lanes as with 4. Kernels of 4-byte elements were slower
// with fewer lanes.
int32_t lanesOfRows(const Space& space, size_t axis, int32_t lanes) {
  const int64_t extent = space.extents[axis];
  const int64_t vectors = ceilDiv(extent, int64_t{lanes});
  constexpr int64_t kShort = 8;
  // True if at least a quarter of the lanes of the row's vectors would be empty.
  if (extent < kShort && extent * 4 <= vectors * lanes * 3) return 1;
  if (space.extents.size() < 2 || isAligned(space, axis, lanes)) return lanes;
  int64_t narrowest = 8;
  bool has_index = false;  // along the axis
  for (const SpaceTensor& t : space.tensors) {
    if (t.strides[axis] != 1) continue;
    if (t.output) narrowest = std::min(narrowest, sizeOf(t.dtype));
    has_index = has_index || (!t.output && (t.dtype == DType::I32 || t.dtype == DType::I64));
  }
  // On an H200, cats and rolls of 8-byte elements along the rows took 1.06 times as long with two
  // lanes as with one. Along another axis, they took 0.85 times as long.
  if (narrowest == 8 && selectsAlong(space, axis)) return 1;
  if (narrowest > 2) return lanes;
  return std::min(lanes, !space.indexed.empty() && has_index ? 2 : 4);
}

void scheduleCudaPointwise(const Space& space, Schedule& s) {
  const size_t axis = s.laneAxis(space);
  const int32_t width = pointwiseWidth(space, axis);
  s.lanes = lanesOfRows(space, axis, width);
  s.chunk = s.lanes;
  s.exact = space.extents[axis] % s.lanes == 0;
  s.block = 256;
  const int64_t bytes = hasLookups(space) ? kBytesInFlight : kPointwiseBytes;
  s.unroll = unrollFor(space, s.lanes, bytes);
  // If lanesOfRows() has reduced the lanes, loading one item at a time was as fast as loading
  // several. Exception: kernels with lookups (hasLookups()) load up to two.
  if (s.lanes < width) s.unroll = std::min(s.unroll, hasLookups(space) ? 2 : 1);
  int64_t items = keptItems(s, space);
  while (s.unroll > 1 && items < s.unroll * s.block * kProcessors * 8) s.unroll /= 2;
}

// chooseSchedule() lets a block of an outer reduction reduce at least this many items of the kept
// axes (*columns*), if there are so many.
constexpr int64_t kFewestColumns = 8;

// Returns how many of the `kept` columns a block of an outer reduction reduces. A column is a
// vector of up to 16 bytes, so 32 columns are up to 512 neighbouring bytes. A smaller number is
// better if the last block would otherwise have few columns.
int64_t columnsFor(int64_t kept) {
  constexpr double kGain = 1.15;
  const auto fullness = [kept](int64_t columns) {
    return static_cast<double>(kept) / static_cast<double>(columns * ceilDiv(kept, columns));
  };
  int64_t best = std::min<int64_t>(32, floorPowerOfTwo(std::max<int64_t>(kept, 1)));
  for (int64_t columns = best / 2; columns >= kFewestColumns; columns /= 2) {
    if (fullness(columns) > kGain * fullness(best)) best = columns;
  }
  return best;
}

// Returns whether an outer reduction should have fewer lanes than s.lanes. A thread loads the
// elements of an unaligned vector one by one, so each load of a warp covers several cache lines.
// With fewer lanes, a warp loads neighbouring elements. This is faster if there are many items to
// reduce.
bool prefersFewerLanes(const Space& space, const Schedule& s) {
  constexpr int64_t kManyItems = 256;
  return s.kind == ScheduleKind::OuterReduction && space.reducedCount() >= kManyItems &&
         !isAligned(space, s.laneAxis(space), s.lanes);
}

// Chooses the lanes of a reduction, and how many items a thread loads at once.
void chooseReductionLanes(const Space& space, Schedule& s, bool may_split) {
  s.lanes = std::min(vectorWidth(space, s.laneAxis(space)), 8);  // more need too many registers
  // If may_split is false, the launch often combines partial results. It waits for the memory most
  // of the time, so it needs blocks on all multiprocessors.
  const bool is_inner = s.kind == ScheduleKind::InnerReduction;
  while (!is_inner && !may_split && s.lanes > 1 &&
         space.keptCount() / (s.lanes * kFewestColumns) < 2 * kProcessors) {
    s.lanes /= 2;
  }
  s.unroll = std::min<int32_t>(unrollFor(space, s.lanes, kBytesInFlight) * 2, 8);
  // On an H200, unaligned sums of 2-byte elements took 0.90 to 0.97 times as long as with 8 lanes.
  if (is_inner && s.lanes == 8 && !isAligned(space, s.laneAxis(space), 8)) s.lanes = 4;
  if (!prefersFewerLanes(space, s)) return;
  const bool has_pairs = s.lanes > 4;  // all elements have at most 2 bytes
  const bool has_narrow = std::ranges::any_of(
      space.tensors, [](const SpaceTensor& t) { return !t.output && sizeOf(t.dtype) <= 2; });
  const int64_t loads = has_narrow ? 8 : 16;
  do s.lanes = has_pairs ? s.lanes / 2 : 1;
  while (s.lanes > 1 && !isAligned(space, s.laneAxis(space), s.lanes));
  // A thread loads about `loads` elements at once. On an H200, more were slower. With one item, the
  // compiler unrolls the loop, and needs fewer checks of its end: the best way for 2-byte elements.
  const auto isLoaded = [&](const SpaceTensor& t) { return !t.output && isFull(t, space); };
  const int64_t lanes = s.lanes * std::ranges::count_if(space.tensors, isLoaded);
  s.unroll = static_cast<int32_t>(floorPowerOfTwo(loads / std::clamp<int64_t>(lanes, 1, loads)));
  if (has_pairs) s.unroll = s.lanes > 1 ? 4 : 1;
}

// Returns whether an outer reduction should set Schedule::streams. On an H200, reductions of one
// tensor of 16-bit elements of 20 to 240 MB, whose blocks have many columns, took 0.79 to 1.00
// times as long as without it. Reductions of two tensors, or of longer elements, took 0.96 to 1.4
// times as long. Smaller inputs should stay in the L2 cache, because a later kernel may read them.
bool streamsColumns(const Space& space, const Schedule& s) {
  constexpr int32_t kMostThreads = 16;  // of one column; with 32, some took 1.24 times as long
  constexpr int64_t kFewestBytes = int64_t{32} << 20, kWidest = 2;
  int64_t tensors = 0, bytes = 0;  // bytes: of one element
  for (const SpaceTensor& t : space.tensors) {
    if (t.output || !isFull(t, space)) continue;
    ++tensors;
    bytes = sizeOf(t.dtype);
  }
  return s.kind == ScheduleKind::OuterReduction && s.reduce_threads <= kMostThreads &&
         tensors == 1 && bytes <= kWidest &&
         bytes * space.keptCount() * space.reducedCount() >= kFewestBytes;
}

// Returns how many blocks per multiprocessor a reduction should have, if it may be divided into
// ranges. `groups` is the number of blocks without ranges. These numbers were the fastest ones on
// an H200. Joint inner reductions need many registers, so few of their blocks run at the same time:
// two if a thread loads at least 32 elements at once, else four. With more blocks, the
// multiprocessors would need several turns, and each block would have less work between its start
// and the combination of its results. Softmax of 1 to 15 rows of 16-bit elements took 0.75 to 0.9
// times as long with these numbers as with 12.
int64_t blocksPerProcessor(const Schedule& s, bool has_joint, int64_t groups) {
  constexpr int64_t kFewGroups = 16;
  if (s.kind != ScheduleKind::InnerReduction) return has_joint ? 6 : 8;
  if (!has_joint || groups > kFewGroups) return 12;
  return s.lanes * s.unroll >= 32 ? 2 : 4;
}

// Chooses the block of a reduction, and how many of its threads share a kept item.
void chooseReductionThreads(const Space& space, Schedule& s, bool may_split) {
  int64_t kept = keptItems(s, space);
  int64_t reduced = reducedItems(s, space);
  s.block = 256;
  if (s.kind == ScheduleKind::InnerReduction) {
    // A row consists of the elements of one result. If rows are long, or few and not very short, a
    // block or half a block reduces each row. Otherwise, up to a warp does.
    bool wide = reduced > 32 * s.unroll * 4 || (kept < kProcessors * 8 && reduced > 64);
    s.reduce_threads = wide ? 256 : 32;
    while (s.reduce_threads > 1 && s.reduce_threads / 2 >= reduced) s.reduce_threads /= 2;
  } else {
    int64_t columns = columnsFor(kept);
    // If few columns are neighbours in memory, a block with fewer columns reads nearer elements.
    const bool is_short = space.extents[s.laneAxis(space)] / s.lanes < kFewestColumns;
    if (is_short) columns = std::min(columns, 2 * kFewestColumns);
    // If the range may not be split, there are more blocks only if each has fewer columns.
    while (!may_split && columns > kFewestColumns && kept / columns < kProcessors &&
           reduced >= 2 * s.block / columns) {
      columns /= 2;
    }
    s.reduce_threads = static_cast<int32_t>(s.block / columns);
    // If threads have few items, they spend much of their time on the combination of their results.
    // On an H200, a mean of 11 items took 0.78 times as long with 2 threads as with 8.
    constexpr int64_t kFewestItems = 4;
    if (reduced < s.reduce_threads * kFewestItems) {
      s.reduce_threads = static_cast<int32_t>(floorPowerOfTwo(reduced / kFewestItems));
    }
    // With fewer threads per column, a block has more columns, or fewer threads if there are few.
    const bool has_many = kept / (s.block / s.reduce_threads) >= kProcessors * 8;
    if (!has_many) {
      s.block = static_cast<int32_t>(std::max<int64_t>(columns * s.reduce_threads, 32));
    }
    if (columns * s.reduce_threads < 32) s.reduce_threads = static_cast<int32_t>(32 / columns);
    if (s.reduce_threads == 1) s.block = 128;
  }
}

void scheduleCudaReduction(const Space& space, Schedule& s, bool may_split, bool has_joint,
                           const KernelChoice* choice) {
  const int32_t width = std::min(vectorWidth(space, s.laneAxis(space)), 8);
  const bool is_outer = s.kind == ScheduleKind::OuterReduction;
  if (is_outer && may_split && !has_joint) {
    if (const auto shifted = scheduleShifted(space, width, choice)) {
      s = *shifted;
      return;
    }
  }
  chooseReductionLanes(space, s, may_split);
  s.chunk = s.lanes;
  s.exact = space.extents[s.laneAxis(space)] % s.lanes == 0;
  chooseReductionThreads(space, s, may_split);
  const int64_t reduced = reducedItems(s, space);
  s.streams = !has_joint && streamsColumns(space, s);
  while (s.unroll > 1 && reduced < int64_t{s.reduce_threads} * s.unroll) s.unroll /= 2;
  int64_t blocks = std::max<int64_t>(groupsOf(s, space), 1);
  // Each thread should have at least 2 * s.unroll items of each range. Two ranges save less time
  // than the combination of their results costs.
  int64_t most = reduced / (int64_t{s.reduce_threads} * s.unroll * 2);
  const int64_t wanted = kProcessors * blocksPerProcessor(s, has_joint, blocks);
  if (may_split && blocks * 3 <= std::min(wanted, kProcessors * 8) && most > 2) {
    s.splits = std::min({wanted / blocks, most, kMostSplits});
  }
}

}  // namespace

size_t Schedule::laneAxis(const Space& space) const {
  return kind == ScheduleKind::InnerReduction ? space.extents.size() - 1 : space.kept - 1;
}

int64_t groupsOf(const Schedule& s, const Space& space) {
  return ceilDiv(keptItems(s, space), int64_t{s.columnsOfBlock()});
}

int64_t keptItems(const Schedule& schedule, const Space& space) {
  if (schedule.kind == ScheduleKind::InnerReduction) return space.keptCount();
  int64_t lane_extent = space.extents[space.kept - 1];
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < space.kept; ++i) rows *= space.extents[i];
  return rows * schedule.laneItems(lane_extent);
}

int64_t reducedItems(const Schedule& schedule, const Space& space) {
  if (schedule.kind != ScheduleKind::InnerReduction) return space.reducedCount();
  int64_t rows = 1;
  for (size_t i = space.kept; i + 1 < space.extents.size(); ++i) rows *= space.extents[i];
  return rows * ceilDiv(space.extents.back(), schedule.chunk);
}

Schedule chooseSchedule(const Space& space, Target target, bool may_split, bool has_joint,
                        const KernelChoice* choice) {
  Schedule s;
  s.target = target;
  if (space.hasReduced()) {
    s.kind = lanesAlongReduced(space) ? ScheduleKind::InnerReduction : ScheduleKind::OuterReduction;
  }
  const bool cuda = target == Target::Cuda;
  if (s.kind == ScheduleKind::Pointwise) {
    cuda ? scheduleCudaPointwise(space, s) : scheduleCpuPointwise(space, s);
  } else {
    cuda ? scheduleCudaReduction(space, s, may_split, has_joint, choice)
         : scheduleCpuReduction(space, s, may_split);
  }
  return s;
}

Schedule chooseSharedSchedule(const Space& space, Target target) {
  if (target == Target::Cpp) return chooseSchedule(space, target, false);
  constexpr int32_t kMostInFlight = 2;
  Schedule s;
  s.target = target;
  s.lanes = vectorWidth(space, s.laneAxis(space), true, true);
  if (!isAligned(space, s.laneAxis(space), s.lanes)) {
    s.lanes = vectorWidth(space, s.laneAxis(space), false, true);
  }
  s.chunk = s.lanes;
  s.block = 256;
  s.unroll = std::min(unrollFor(space, s.lanes, kBytesInFlight), kMostInFlight);
  return s;
}

KernelChoice choiceOf(const Schedule& s) {
  const bool reduces = s.kind != ScheduleKind::Pointwise;
  KernelChoice choice{"loops", {}};
  if (s.target == Target::Cuda) {
    choice.parameters = {{"lanes", s.lanes}, {"unroll", s.unroll}, {"block", s.block}};
    if (reduces) choice.set("reduce_threads", s.reduce_threads);
    choice.set("streams", s.streams ? 1 : 0);
    if (s.kind == ScheduleKind::OuterReduction) choice.set("shifted", s.shifted ? 1 : 0);
  } else {
    if (reduces) choice.set("lanes", s.lanes);
    choice.set("chunk", s.chunk);
    choice.set("items_per_tile", s.items_per_tile);
  }
  if (reduces) choice.set("splits", s.splits);
  return choice;
}

namespace {

void applyCuda(const KernelChoice* choice, const Space& space, Schedule& s) {
  constexpr int64_t kMostUnroll = 16, kWarp = 32;
  const Schedule before = s;
  const int32_t widest = std::max(s.lanes, std::min(vectorWidth(space, s.laneAxis(space)), 8));
  s.lanes = static_cast<int32_t>(powerOf(choice, "lanes", widest, s.lanes));
  s.chunk = s.lanes;
  s.exact = space.extents[s.laneAxis(space)] % s.lanes == 0;
  s.unroll = static_cast<int32_t>(powerOf(choice, "unroll", kMostUnroll, s.unroll));
  s.streams = choice->find("streams").value_or(s.streams ? 1 : 0) != 0;
  if (s.kind == ScheduleKind::Pointwise) {
    s.block = static_cast<int32_t>(std::max(powerOf(choice, "block", 1024, s.block), kWarp));
  } else {
    s.reduce_threads =
        static_cast<int32_t>(powerOf(choice, "reduce_threads", s.block, s.reduce_threads));
    keepShift(space, before, s);
  }
}

void applyCpp(const KernelChoice* choice, const Space& space, Schedule& s) {
  constexpr int64_t kMostLanes = 1024;
  constexpr int64_t kMost = int64_t{1} << 40;
  const int64_t extent = std::max<int64_t>(space.extents[s.laneAxis(space)], 1);
  if (s.kind != ScheduleKind::Pointwise) {
    s.lanes = static_cast<int32_t>(powerOf(choice, "lanes", kMostLanes, s.lanes));
  }
  // In an outer reduction, each element of an item has its own accumulator.
  const bool outer = s.kind == ScheduleKind::OuterReduction;
  s.chunk = outer ? std::min<int64_t>(s.lanes, extent) : numberOf(choice, "chunk", extent, s.chunk);
  s.items_per_tile = numberOf(choice, "items_per_tile", kMost, s.items_per_tile);
}

}  // namespace

void apply(const KernelChoice* choice, const Space& space, bool may_split, Schedule& s) {
  if (!isFamily(choice, "loops")) return;
  s.target == Target::Cuda ? applyCuda(choice, space, s) : applyCpp(choice, space, s);
  if (s.kind == ScheduleKind::Pointwise) return;
  constexpr int64_t kMostGroups = LaunchStage::kCounterBytes / 4;  // each group has a counter
  const bool splits = may_split && (s.target == Target::Cpp || groupsOf(s, space) <= kMostGroups);
  const int64_t most = splits ? std::min(reducedItems(s, space), kMostSplits) : 1;
  s.splits = numberOf(choice, "splits", most, std::min(s.splits, std::max<int64_t>(most, 1)));
}

}  // namespace heddle::codegen
