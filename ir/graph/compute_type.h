#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Returns the type in which a Pointwise expression computes, a computeType(). Its operands are
// converted to it first, except the leading conditions of `where`, which are bool. The result is
// then rounded to the dtype of the output.
DType computeTypeOf(const Fusion& fusion, const Expression& expr);

// Returns whether the expression raises a tensor to a power that is a host scalar. For floats and
// the powers 0.5 and -0.5 heddle then computes sqrt and rsqrt, as PyTorch does. pow gives other
// results for -0.0 and -inf.
bool isPowByNumber(const Fusion& fusion, const Expression& expr);

}  // namespace heddle
