#pragma once

#include "ir/size.h"

namespace heddle {

// floorDiv(a, b) with the factors that both have cancelled: of t*4 and 4 it is t.
Size quotient(const Size& a, const Size& b);

}  // namespace heddle
