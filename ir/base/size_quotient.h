#pragma once

#include "ir/base/size.h"

namespace heddle {

// Returns floorDiv(a, b) with common factors cancelled: t for t*4 and 4.
Size quotient(const Size& a, const Size& b);

// Returns mod(a, n), or 0 if the factors of `a` show that n divides it: 0 for t*4 and 2. Requires
// n > 0.
Size remainder(const Size& a, int64_t n);

}  // namespace heddle
