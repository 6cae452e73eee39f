#pragma once

#include <string_view>
#include <vector>

#include "ir/graph/builder.h"

namespace heddle {

// Convert the operands of elementwise ops where PyTorch's common type differs from the type in
// which heddle computes. Only FusionBuilder calls them.

// Converts float scalars to integers if all tensors are integers, for the parameters of threshold
// and the value of addcmul. These do not make the tensors floats. `operands` are those of the op
// `def`.
void fitParameters(FusionBuilder& b, const OpDef& def, std::vector<ValueId>& operands);

// Converts operands whose common type is `promoted`:
//  - A 0-d tensor that would widen the type of tensors with axes is cast to `promoted`.
//  - An i64 or i32 tensor with a half type is cast to the half type, except in cast and where.
//  - A scalar in a comparison with a half type is rounded to the half type.
//  - With u8, i8 and i32, ops that compare with a scalar, divide or shift by it, or select it need
//  its
//    exact value. A literal out of range is a UserError, and another scalar wraps to the type
//    first. In sums, products and bit operations, scalars wrap with the result.
//  - A bound of clamp, maximum and similar ops may be out of range if it then has no effect.
//  Otherwise
//    a literal bound is a UserError.
void fitOperands(FusionBuilder& b, const OpDef& def, std::vector<ValueId>& operands,
                 DType promoted);

}  // namespace heddle
