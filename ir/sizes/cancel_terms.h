#pragma once

#include "ir/base/size.h"

namespace heddle {

// Returns an equal size without terms that cancel: (%i + 2) - (%i + 1) becomes 1, and n + 1 + (-1)
// becomes n. Returns the size unchanged if no term cancels, if the size has more than about 60
// terms, or if a factor would overflow. Size::sub() is weaker: it cancels a term only against an
// operand of the outermost sum.
Size cancelTerms(const Size& size);

}  // namespace heddle
