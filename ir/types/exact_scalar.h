#pragma once

#include <string>

#include "ir/base/dtype.h"

namespace heddle {

// Returns "" if a caller may pass `value` for a scalar of type `dtype`, otherwise the reason why
// not. The rules are:
//  - A bool type takes bools.
//  - An integer type takes integers in its range.
//  - A float type takes infinities, NaN and floats that remain finite when they are rounded to the
//    type. It also takes integers that it represents exactly.
std::string whyNotScalar(DType dtype, const Scalar& value);

}  // namespace heddle
