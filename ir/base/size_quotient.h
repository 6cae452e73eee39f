#pragma once

#include "ir/base/size.h"

namespace heddle {

// floorDiv(a, b) with the factors that both have cancelled: of t*4 and 4 it is t.
Size quotient(const Size& a, const Size& b);

// mod(a, n) for n > 0, and 0 where a factor of `a` is known to be a multiple: of t*4 and 2 it is 0.
Size remainder(const Size& a, int64_t n);

}  // namespace heddle
