#pragma once

#include <string>

#include "ir/base/dtype.h"

namespace heddle {

// Returns "" if a caller may pass `value` for a scalar of type `dtype`, otherwise the reason why
// not. The value must keep its kind, and must fit:
//  - bool takes bools.
//  - Integers take integers in the range of the type.
//  - Floats take floats that remain finite when they are rounded to the type, infinities and NaN.
//    They also take integers that the type represents exactly.
std::string whyNotScalar(DType dtype, const Scalar& value);

}  // namespace heddle
