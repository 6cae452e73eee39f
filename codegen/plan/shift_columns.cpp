#include "codegen/plan/shift_columns.h"

#include <algorithm>

namespace heddle::codegen {
namespace {

bool beginsAligned(const SpaceTensor& t, int32_t lanes) {
  return t.alignment % std::min<int64_t>(lanes * sizeOf(t.dtype), kFullAlignment) == 0;
}

// Returns whether all rows of the tensor are aligned for vectors.
bool hasAlignedRows(const SpaceTensor& t, size_t lane_axis, int32_t lanes) {
  for (size_t i = 0; i < t.strides.size(); ++i) {
    if (i != lane_axis && t.strides[i] % lanes != 0) return false;
  }
  return beginsAligned(t, lanes);
}

// Returns whether the first elements of both tensors are aligned for vectors, and all their rows
// begin equally many elements after an aligned address.
bool haveEqualShifts(const SpaceTensor& a, const SpaceTensor& b, size_t lane_axis, int32_t lanes) {
  if (!beginsAligned(a, lanes) || !beginsAligned(b, lanes)) return false;
  for (size_t i = 0; i < a.strides.size(); ++i) {
    if (i != lane_axis && (a.strides[i] - b.strides[i]) % lanes != 0) return false;
  }
  return true;
}

// Returns whether elements of the tensor along the lane axis depend on the reduced axes.
bool changesAlongRows(const SpaceTensor& t, const Space& space) {
  return std::any_of(t.strides.begin() + static_cast<ptrdiff_t>(space.kept), t.strides.end(),
                     [](int64_t stride) { return stride != 0; });
}

// Returns whether all rows of a thread have the same shift. The reduced items of a thread are
// `threads` apart. With several reduced axes, the shift must grow from one item to the next as if
// they were one axis.
bool hasOneShift(const SpaceTensor& t, const Space& space, int32_t threads, int32_t lanes) {
  for (size_t i = space.extents.size() - 1; i > space.kept; --i) {
    if ((t.strides[i - 1] - space.extents[i] * t.strides[i]) % lanes != 0) return false;
  }
  return t.strides.back() * threads % lanes == 0;
}

// Returns whether the tensor is an input with an element per column.
bool hasColumns(const SpaceTensor& t, const Schedule& s, const Space& space) {
  return !t.output && t.strides[s.laneAxis(space)] != 0;
}

// Returns the size of the longest elements of these inputs.
int64_t widestColumns(const Schedule& s, const Space& space) {
  int64_t bytes = 0;
  for (const SpaceTensor& t : space.tensors) {
    if (hasColumns(t, s, space)) bytes = std::max(bytes, sizeOf(t.dtype));
  }
  return bytes;
}

// Returns the wanted number of blocks. On an H200, multiprocessors run four blocks of a shifted
// reduction at the same time. Reductions of 30 to 260 MB took 0.78 to 0.97 times as long with four
// as with eight. If there are many groups, reductions of 4-byte elements took 0.97 times as long
// with three. Reductions of 2-byte elements often compute so much that idle multiprocessors cost
// time: a reduction of gelu with 420 instead of 528 blocks took 1.2 times as long as with 1050.
int64_t wantedBlocks(const Schedule& s, const Space& space, int64_t groups) {
  constexpr int64_t kManyGroups = 16, kFewestPercent = 82;
  const bool is_short = widestColumns(s, space) <= 2;
  const int64_t wanted = kProcessors * (is_short || groups <= kManyGroups ? 4 : 3);
  const int64_t blocks = wanted / groups * groups;
  const bool leaves_idle = is_short && blocks * 100 < wanted * kFewestPercent;
  return leaves_idle && groups <= wanted ? 2 * wanted : wanted;
}

// Returns the number of ranges. Each thread should have at least 2 * s.unroll items of each range.
// There are so few blocks that even two ranges save more time than the combination of their results
// costs.
int64_t rangesOf(const Schedule& s, const Space& space) {
  const int64_t groups = std::max<int64_t>(groupsOf(s, space), 1);
  const int64_t most = reducedItems(s, space) / (int64_t{s.reduce_threads} * s.unroll * 2);
  return std::clamp<int64_t>(wantedBlocks(s, space, groups) / groups, 1,
                             std::clamp<int64_t>(most, 1, kMostSplits));
}

// Returns whether the reduction should set Schedule::streams. On an H200, reductions of one or two
// inputs of 2-byte elements took 0.83 to 1.00 times as long with it, and longer elements took up to
// 1.08 times as long. Smaller inputs should stay in the L2 cache, because a later kernel may read
// them.
bool streamsRows(const Schedule& s, const Space& space) {
  constexpr int64_t kFewestBytes = int64_t{32} << 20, kWidest = 2;
  const int64_t bytes = widestColumns(s, space);
  return bytes <= kWidest && bytes * space.keptCount() * space.reducedCount() >= kFewestBytes;
}

// With 8 or more threads per column, the distance of two rows of a thread is a multiple of every
// vector. A block has 32 columns, or as many as a row needs, if these are fewer. With more than
// kMostVectors vectors at once, a thread would need so many registers that fewer blocks run at the
// same time.
Schedule shiftedSchedule(const Space& space, int32_t width) {
  constexpr int32_t kBlock = 256, kMostColumns = 32, kFewestColumns = 4;
  constexpr int64_t kUnroll = 4, kMostVectors = 8;
  Schedule s;
  s.kind = ScheduleKind::OuterReduction;
  s.lanes = width;
  s.chunk = width;
  s.exact = false;
  s.shifted = true;
  s.overlaps = true;
  s.block = kBlock;
  const int64_t kept = keptItems(s, space);
  int64_t columns = kFewestColumns;
  while (columns < kMostColumns && columns - 1 < kept) columns *= 2;
  s.reduce_threads = static_cast<int32_t>(kBlock / columns);
  const int64_t inputs = std::ranges::count_if(
      space.tensors, [&](const SpaceTensor& t) { return hasColumns(t, s, space); });
  const int64_t reduced = reducedItems(s, space);
  s.unroll = kUnroll;
  while (s.unroll > 1 &&
         (reduced < int64_t{s.reduce_threads} * s.unroll || inputs * s.unroll > kMostVectors)) {
    s.unroll /= 2;
  }
  s.splits = rangesOf(s, space);
  s.streams = streamsRows(s, space);
  return s;
}

}  // namespace

bool mayShift(const Space& space, const Schedule& s) {
  constexpr int32_t kFewestColumns = 4;
  if (s.target != Target::Cuda || s.kind != ScheduleKind::OuterReduction || s.lanes == 1 ||
      s.reduce_threads == 1 || s.block / s.reduce_threads < kFewestColumns) {
    return false;
  }
  if (!space.coordinates.empty() || !space.indexed.empty()) return false;
  const size_t lane_axis = s.laneAxis(space);
  bool is_aligned = true;
  const SpaceTensor* first = nullptr;
  for (const SpaceTensor& t : space.tensors) {
    const bool changes = changesAlongRows(t, space);
    if (t.output && changes) return false;
    if (!hasColumns(t, s, space)) continue;
    if (t.strides[lane_axis] != 1 || !changes) return false;
    if (!hasOneShift(t, space, s.reduce_threads, s.lanes)) return false;
    if (first != nullptr && !haveEqualShifts(*first, t, lane_axis, s.lanes)) return false;
    if (first == nullptr) first = &t;
    is_aligned = is_aligned && hasAlignedRows(t, lane_axis, s.lanes);
  }
  return !is_aligned;
}

std::optional<Schedule> scheduleShifted(const Space& space, int32_t width,
                                        const KernelChoice* choice) {
  constexpr int64_t kFewestRows = 256, kFewestVectors = 2, kFewestBytes = 2, kMostBytes = 4;
  const Schedule s = shiftedSchedule(space, width);
  if (!mayShift(space, s)) return std::nullopt;
  if (isFamily(choice, "loops")) {
    if (const auto asked = choice->find("shifted"))
      return *asked != 0 ? std::optional(s) : std::nullopt;
  }
  for (const SpaceTensor& t : space.tensors) {
    const int64_t bytes = sizeOf(t.dtype);
    if (hasColumns(t, s, space) && (bytes < kFewestBytes || bytes > kMostBytes))
      return std::nullopt;
  }
  if (space.reducedCount() < kFewestRows) return std::nullopt;
  if (space.extents[s.laneAxis(space)] < kFewestVectors * s.lanes) return std::nullopt;
  return s;
}

void keepShift(const Space& space, const Schedule& before, Schedule& s) {
  if (!s.shifted) return;
  s.exact = false;
  if (mayShift(space, s)) return;
  s.lanes = before.lanes;
  s.chunk = before.chunk;
  s.reduce_threads = before.reduce_threads;
}

}  // namespace heddle::codegen
