#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Returns the type in which a Pointwise expression computes: f32, f64, i64 or bool. These are the
// types that computeType() (ir/ops/op.h) returns. The expression first converts its operands to
// this type; the condition of `where` stays bool. It then computes, and rounds the result to the
// dtype of its output.
DType computeTypeOf(const Fusion& fusion, const Expression& expr);

// Returns whether the expression raises a tensor to a power that is a scalar in host memory. For
// floats, heddle then computes the powers 0.5 and -0.5 as sqrt and rsqrt, as PyTorch does. For the
// bases -0.0 and -inf, the results of pow() would differ from PyTorch's.
bool isPowByNumber(const Fusion& fusion, const Expression& expr);

}  // namespace heddle
