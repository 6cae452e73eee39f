#pragma once

#include <string>

#include "codegen/bind/entry_numbers.h"
#include "codegen/families/rows.h"
#include "codegen/families/squares.h"

namespace heddle::codegen {

// The functions below append facts on which the text of a kernel depends. The emitters read no
// other numbers: IndexExpr::str() prints names of arguments, not their values.

// Says what comes next in a list of facts.
enum class FactKind : char { Empty, Loop, SharedLoop, Rows, Squares, Sweeps, Columns };
inline void appendKind(FactKind kind, std::string& facts) { facts += static_cast<char>(kind); }

// Appends the number of axes, and which strides are 0 or 1.
void appendClasses(const Space& space, std::string& facts);
// Calls appendClasses(), and appends all other facts about the space and the schedule of a launch.
void appendFacts(const EntryNumbers& entry, std::string& facts);
void appendFacts(const RowCandidate& candidate, std::string& facts);
void appendFacts(const SquarePlan& plan, std::string& facts);

}  // namespace heddle::codegen
