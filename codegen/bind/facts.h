#pragma once

#include <string>

#include "codegen/bind/entry_numbers.h"
#include "codegen/families/rows/rows.h"
#include "codegen/families/squares.h"

namespace heddle::codegen {

// The functions below append the facts on which the text of a kernel depends
// (KernelNumbers::facts). The text depends on no other numbers: IndexExpr::str()
// (codegen/plan/index_expr.h) prints the names of arguments, not their values.

// Says what the next facts describe:
// - Loop, SharedLoop, Rows, Squares: one entry (EntryNumbers).
// - Ranges: the first of two entries that one launch computes (codegen/families/loops.h).
// - Sweeps, Columns: all entries of a piece (PiecePlanner). The facts of these entries follow.
// - Empty: a piece without entries.
enum class FactKind : char { Empty, Loop, Ranges, SharedLoop, Rows, Squares, Sweeps, Columns };
inline void appendKind(FactKind kind, std::string& facts) { facts += static_cast<char>(kind); }

// Appends how many kept axes, axes and tensors there are, which strides are 0 or 1, and along which
// axes bodies (codegen/plan/body.h) use the index of the current element.
void appendClasses(const Space& space, std::string& facts);
// Calls appendClasses(), and appends all other facts about the space and the schedule of an entry.
// For an entry with rows or squares, the caller also appends the facts about the layout.
void appendFacts(const EntryNumbers& entry, std::string& facts);
void appendFacts(const RowCandidate& candidate, std::string& facts);
void appendFacts(const SquarePlan& plan, std::string& facts);

}  // namespace heddle::codegen
