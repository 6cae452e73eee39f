#include "codegen/families/rows/row_vectors.h"

#include <algorithm>

#include "codegen/families/rows/row_limits.h"
#include "ir/base/ceil_div.h"

namespace heddle::codegen {
namespace {

// Returns whether all vectors of the tensors that are contiguous along the row are aligned.
bool hasWholeVectors(const Space& space, int64_t vector) {
  for (const SpaceTensor& t : space.tensors) {
    if (t.strides.back() != 1) continue;
    const int64_t bytes = std::min<int64_t>(vector * sizeOf(t.dtype), kFullAlignment);
    if (t.alignment % bytes != 0) return false;
    for (size_t axis = 0; axis + 1 < space.extents.size(); ++axis) {
      if (t.strides[axis] % vector != 0) return false;
    }
  }
  return true;
}

// Returns the smallest number of vectors per row for which shifted rows (RowLayout::shifted) are
// faster. The first and last vector of a shifted row are slow, because each sweep must mask them.
int64_t shortestShifted(bool several_sweeps) { return several_sweeps ? 64 : 4; }

// Returns whether unaligned rows of 16-bit elements should not be shifted, because all rows share
// an input, such as weights. Shifted vectors are not aligned in such an input, so a thread loads
// its elements one by one, and each load of a warp covers several cache lines. On an H200,
// layer_norm of rows of 258 to 2371 elements took 0.71 to 0.84 times as long with single elements.
bool prefersElements(const Space& space) {
  constexpr int64_t kLongest = 4096;
  bool has_shared = false;
  for (const SpaceTensor& t : space.tensors) {
    if (t.strides.back() != 1) continue;
    const auto rows = t.strides.begin() + static_cast<ptrdiff_t>(space.kept);
    const bool is_shared = std::all_of(t.strides.begin(), rows, [](int64_t s) { return s == 0; });
    if (!is_shared && sizeOf(t.dtype) > 2) return false;
    has_shared = has_shared || is_shared;
  }
  return has_shared && space.extents.back() <= kLongest;
}

}  // namespace

bool isContiguousAlongRow(const Space& space) {
  const size_t lane = space.extents.size() - 1;
  if (space.extents[lane] == 1) return true;
  return std::all_of(space.tensors.begin(), space.tensors.end(),
                     [&](const SpaceTensor& t) { return t.strides[lane] <= 1; });
}

Space withRows(Space space) {
  if (!space.hasReduced()) --space.kept;
  return space;
}

bool hasColumns(const Space& space) {
  return std::any_of(space.tensors.begin(), space.tensors.end(),
                     [](const SpaceTensor& t) { return t.column >= 0; });
}

int64_t vectorsPerRow(const Space& space, int64_t vector) {
  int64_t vectors = ceilDiv(space.extents.back(), vector);
  for (size_t i = space.kept; i + 1 < space.extents.size(); ++i) vectors *= space.extents[i];
  return vectors;
}

int64_t mostVectors(const Space& space, int64_t vector, bool shifted) {
  return shifted ? ceilDiv(space.extents.back() + vector - 1, vector)
                 : vectorsPerRow(space, vector);
}

int64_t widestOf(const Space& space) {
  int64_t widest = 1;
  for (const SpaceTensor& t : space.tensors) {
    if (t.strides.back() == 1 && t.column < 0) widest = std::max(widest, sizeOf(t.dtype));
  }
  return widest;
}

Vectors vectorsOf(const Space& space, int64_t ops, bool several_sweeps) {
  int64_t length = std::min<int64_t>(16 / widestOf(space), 8);
  while (length > 1 && length * ops > row_limits::kMostUnrolled) length /= 2;
  const bool one_axis = space.extents.size() == space.kept + 1;
  if (length > 1 && one_axis && !hasColumns(space) && !hasWholeVectors(space, length) &&
      space.extents.back() >= shortestShifted(several_sweeps) * length &&
      !(several_sweeps && prefersElements(space))) {
    return {length, true};
  }
  while (length > 1 && (length > space.extents.back() || !hasWholeVectors(space, length))) {
    length /= 2;
  }
  return {length, false};
}

namespace {

// Returns whether there are many short rows whose elements come from other positions of an input,
// as in a pad or a roll. One thread per row then computes the position once. A kernel of the family
// "loops" computes the position for each vector or element. On an H200, it took twice as long for
// rows of 3 and 5 elements.
bool hasShortShiftedRows(const Space& space) {
  constexpr int64_t kLongest = 8;
  if (space.indexed.empty() || hasLookups(space)) return false;
  const Space rows = withRows(space);
  return rows.extents.back() > 1 && rows.extents.back() < kLongest && isContiguousAlongRow(rows) &&
         rows.keptCount() >= row_limits::kFewRows && vectorsOf(rows, 1, false).length == 1;
}

}  // namespace

bool hasUnalignedRows(const Space& space, Target target) {
  // The smallest number of vectors per row for which "rows" is faster than "loops". A reduction
  // masks the first and last vector for loads. A pointwise kernel masks them for loads and stores.
  const int64_t shortest = space.hasReduced() ? 16 : 32;
  if (target != Target::Cuda || space.extents.size() < 2) return false;
  const Space rows = withRows(space);
  if (!space.hasReduced() && hasShortShiftedRows(space)) return true;
  // Kernels of the family "loops" access elements of unaligned vectors one by one. This is fast for
  // elements of 4 bytes or more.
  if (!space.hasReduced() && widestOf(rows) >= 4) return false;
  // Kernels that select along the row compare the indices of each vector. On an H200, "rows" took
  // 1.2 to 1.6 times as long for them as "loops".
  if (!space.hasReduced() && selectsAlong(rows, rows.kept)) return false;
  if (!isContiguousAlongRow(rows)) return false;
  const auto [length, shifted] = vectorsOf(rows, 1, false);
  const int64_t vectors = vectorsPerRow(rows, length);
  // Several blocks can share a long row of a pointwise kernel (RowLayout::row_blocks). A row is
  // long if a block could not hold it. All rows together must occupy the GPU. On an H200, pads and
  // rolls of 32 to 51 such rows took 0.74 to 0.8 times as long as with "loops". Kernels that read
  // nothing at computed indices took 1.3 to 1.5 times as long.
  constexpr int64_t kLongVectors = 1 << 14;
  constexpr int64_t kVectorsOfBlock = 4 * row_limits::kLoopThreads;
  const bool is_long = !space.hasReduced() && !space.indexed.empty() && vectors >= kLongVectors &&
                       vectors * rows.keptCount() >= row_limits::kFewRows * kVectorsOfBlock;
  return (rows.keptCount() >= row_limits::kFewRows || is_long) && shifted && vectors >= shortest;
}

}  // namespace heddle::codegen
