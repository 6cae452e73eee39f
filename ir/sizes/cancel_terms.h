#pragma once

#include "ir/base/size.h"

namespace heddle {

// Returns an equal size without terms that cancel: (%i + 2) - (%i + 1) becomes 1, and n + 1 + (-1)
// becomes n. Returns the size unchanged if no term cancels, or if it has more than 64 operators.
// The constructors of Size only cancel a term against the last one of a sum.
Size cancelTerms(const Size& size);

}  // namespace heddle
