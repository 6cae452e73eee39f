#pragma once

#include "ir/base/size.h"

namespace heddle {

// Returns an equal size without terms that cancel: (%i + 2) - (%i + 1) becomes 1, and n + 1 + (-1)
// becomes n. Returns the size unchanged if no term cancels, or if it has more than about 60 terms.
// A subtraction of sizes (Size::sub()) cancels a term only against an operand of the outermost sum.
Size cancelTerms(const Size& size);

}  // namespace heddle
