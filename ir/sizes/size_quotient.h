#pragma once

#include "ir/base/size.h"

namespace heddle {

// Returns floorDiv(a, b), without the factors that `a` and `b` have in common. For example,
// quotient(t*4, 4) is t.
Size quotient(const Size& a, const Size& b);

// Returns mod(a, n), simplified to 0 if the factors of `a` show that n divides `a`. For example,
// remainder(t*4, 2) is 0. Requires n > 0.
Size remainder(const Size& a, int64_t n);

}  // namespace heddle
