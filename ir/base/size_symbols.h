#pragma once

#include <string>

#include "ir/base/size.h"

namespace heddle {

// FusionBuilder computes two kinds of sizes that no user writes. The functions below turn them into
// what the user wrote, or into the size of a run:
// - An open size, given(a, b): the user wrote `a`, which is -1 or may be -1 in a run.
// - A shared axis, whose size is max(n, m)*min(1, min(n, m)): operands with the sizes n? and m?
//   broadcast to it.

// Returns the text of a size for messages. An open size is printed as `a`, and the size of a shared
// axis as `broadcast(n, m)`.
std::string writtenSize(const Size& size);

// Returns the size without these two kinds, for the values of a run. An open size becomes `a` or
// `b`. The size of a shared axis becomes the size that is not 1. Throws UserError if a size that
// decides this has no value.
Size decidedSize(const Size& size, const SizeBindings& values);

}  // namespace heddle
