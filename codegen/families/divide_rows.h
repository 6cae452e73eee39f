#pragma once

#include <optional>

#include "codegen/families/row_candidates.h"

namespace heddle::codegen {

// Candidates in which blocks share long rows (codegen/tile/divided_rows.h). Their family is
// "divided". They are for rows that do not fit on a multiprocessor: one block per row would read
// them once per sweep from memory, because too many rows would be in the L2 cache at once, or would
// leave multiprocessors idle.

// Returns the candidate with the parameters of `looped`, whose blocks process one row each and read
// it once per sweep. A choice of the family "divided" changes the number of parts, and
// DividedRows::streams. Returns nullopt if the segment needs only one sweep, the rows are short, or
// the sizes do not permit the family.
std::optional<RowCandidate> divideRows(const RowCandidate& looped, const Space& rows,
                                       const RowDemands& demands, const KernelChoice* choice);

// Returns the parameters of a candidate.
KernelChoice dividedChoice(const RowLayout& layout);

// Returns whether the candidate should be faster than one block per row, and faster than one launch
// per sweep: the rows are long, they are larger than the cache together, and the parts between two
// sweeps fit in the cache.
bool paysToDivide(const RowCandidate& divided, const Space& rows);

// Returns the bytes of inputs that later sweeps read again while the launch runs: the bytes of the
// parts between the first sweep and the last one.
double bytesBetweenSweeps(const RowLayout& divided, const Space& rows);

}  // namespace heddle::codegen
