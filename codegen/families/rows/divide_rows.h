#pragma once

#include <optional>

#include "codegen/families/rows/row_candidates.h"

namespace heddle::codegen {

// Candidates of the family "divided": several blocks share each row (codegen/tile/divided_rows.h).
// They serve rows that do not fit on one multiprocessor. If one block processed such a row, it
// would read the row once per *sweep* (one pass over the elements of the row). The L2 cache cannot
// hold the rows of all blocks, so every sweep would read memory. If there are few rows,
// multiprocessors would also be idle.

// Returns the divided form of `looped`, a candidate whose blocks process one row each and read it
// once per sweep. The result has vectors of the same length, and at most as many threads per block.
// `choice` is nullptr or has the family "divided". If the choice names `parts`, `streams` or
// `reversed`, its value replaces the computed one. Returns nullopt in these cases:
// - The segment needs only one sweep. Joint reductions (codegen/plan/joint.h) count as one sweep.
// - The kernel adds elements to columns (hasColumns()), or no input differs both between rows and
//   along the row.
// - At most one warp shares a row, or a row is so short that it would be one part and `choice` does
//   not name `parts`.
// - `looped` is not such a candidate: its rows fit in a block, share a block, or are in bundles.
// - There would be 2^30 or more tickets (codegen/tile/divided_rows.h), or the tensors are empty.
std::optional<RowCandidate> divideRows(const RowCandidate& looped, const Space& rows,
                                       const RowDemands& demands, const KernelChoice* choice);

// Returns the parameters of a candidate as a choice of the family "divided".
KernelChoice dividedChoice(const RowLayout& layout);

// Returns whether the candidate should be faster than one block per row, and faster than one launch
// per sweep. Conditions:
// - The inputs that all rows share have less than twice the bytes of the other inputs of a row.
// - There are several rows. Each has at least 256 KiB of inputs, and all together have at least
//   16 MiB. bytesBetweenSweeps() is at most about half of the L2 cache of an H100. On an H200,
//   softmax of a single row of 47 to 72 MB took 1.1 to 1.2 times as long as one launch per sweep.
bool paysToDivide(const RowCandidate& divided, const Space& rows);

// Returns the bytes of inputs that lie between the part that the first sweep processes and the part
// that the last sweep processes at the same time. Later sweeps read these bytes again, so the L2
// cache should hold them.
double bytesBetweenSweeps(const RowLayout& divided, const Space& rows);

}  // namespace heddle::codegen
