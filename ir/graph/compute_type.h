#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// The type in which a Pointwise expression computes, a computeType(). Its operands are converted to
// it first, except the leading conditions of `where`, which are bool. The result is then rounded to
// the dtype of the output.
DType computeTypeOf(const Fusion& fusion, const Expression& expr);

// Whether a tensor is raised to a power that is a host scalar: of floats that is sqrt for 0.5 and
// rsqrt for -0.5, as in PyTorch, where pow would give another result at -0.0 and -inf.
bool isPowByNumber(const Fusion& fusion, const Expression& expr);

}  // namespace heddle
