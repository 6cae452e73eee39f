#pragma once

#include <cstdint>

#include "codegen/plan/space.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// The functions below say which vectors the rows of a kernel consist of.

// Returns whether the kernel also adds elements to columns (SpaceTensor::column).
bool hasColumns(const Space& space);

// Returns whether neighbours along the innermost axis of a row are neighbours in memory. A tensor
// that is broadcast along this axis (stride 0) also counts as contiguous.
bool isContiguousAlongRow(const Space& space);

// Returns the space with at least one reduced axis, because rows lie along the reduced axes. If
// `space` has none, the innermost kept axis becomes a reduced axis.
Space withRows(Space space);

// Returns the number of vectors of `vector` elements in a row.
int64_t vectorsPerRow(const Space& space, int64_t vector);

// Returns the largest number of vectors of a row. A shifted row may need one more vector.
int64_t mostVectors(const Space& space, int64_t vector, bool shifted);

// Returns the bytes of the largest element in tensors that are contiguous along the row.
int64_t widestOf(const Space& space);

// How rows are divided into vectors.
struct Vectors {
  int64_t length = 1;    // elements of a vector
  bool shifted = false;  // as RowLayout::shifted
};

// Returns the longest vectors that suit the alignment of the rows and row_limits::kMostUnrolled.
// `ops` is the number of operations of the longest body. Rows with columns are never shifted: a
// thread must hold elements of the same columns in each of its rows, but the shift differs from row
// to row.
Vectors vectorsOf(const Space& space, int64_t ops, bool several_sweeps);

// Returns whether the family "rows" should be faster than the family "loops" for a segment that
// needs at most one sweep. There are two possible reasons: the rows begin at unaligned addresses,
// or rows of fewer than 8 elements come from other positions of an input, as in a pad or a roll.
// Returns false for fewer than 132 rows, except long rows of a pointwise kernel, which several
// blocks can share. Also returns false for Cpp, because C++ loops read any address equally fast.
bool hasUnalignedRows(const Space& space, Target target);

}  // namespace heddle::codegen
