#pragma once

#include "ir/fusion.h"

namespace heddle {

// The type in which a Pointwise expression computes, a computeType(). Its operands are converted to
// it first, except the leading conditions of `where`, which are bool. The result is then rounded to
// the dtype of the output.
DType computeTypeOf(const Fusion& fusion, const Expression& expr);

}  // namespace heddle
