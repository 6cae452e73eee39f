#pragma once

#include <string>

#include "ir/base/size.h"

namespace heddle {

// FusionBuilder (ir/graph/builder.h) computes two kinds of sizes that no user writes:
// - An open size, given(a, b). The user wrote `a`, which is -1 ("the size that fits") or may be -1
//   in a run. `b` is the size that fits.
// - The size of a shared axis, max(n, m)*min(1, min(n, m)). Two operands broadcast to this axis.
//   Their sizes along it are n and m, and at least one of them may be 1 in a run (declared as
//   `n?`). If n and m differ in a run, one of them is 1, and the value is the other one.
//
// The functions below replace sizes of both kinds for messages. Exception: a size of more than
// Size::kMostPrinted operators is not replaced.

// Returns the text of a size for messages. An open size is printed as `a`, and the size of a shared
// axis as `broadcast(n, m)`.
std::string writtenSize(const Size& size);

// Returns the size with both kinds replaced according to the values of a run. An open size becomes
// `a` or `b`. The size of a shared axis becomes m if n is 1, and otherwise n. Throws UserError if a
// size that decides the replacement has no value.
Size decidedSize(const Size& size, const SizeBindings& values);

}  // namespace heddle
