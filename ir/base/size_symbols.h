#pragma once

#include <string>

#include "ir/base/size.h"

namespace heddle {

// Sizes in the words of the user. FusionBuilder computes two kinds of sizes that no user writes:
// - An open size, given(a, b): the user wrote `a`, which is -1 or may be -1 in a run.
// - The size of an axis that operands with the sizes n? and m? share:
//   max(n, m)*min(1, min(n, m)).

// Returns the text of a size. An open size is `a`, and a shared axis is `broadcast(n, m)`.
std::string writtenSize(const Size& size);

// Returns the size without these two kinds, for the values of a run. An open size is the size for
// which it stands, and a shared axis has the size that is not 1. Throws UserError if a size that
// decides this has no value.
Size decidedSize(const Size& size, const SizeBindings& values);

}  // namespace heddle
