#pragma once

#include <string_view>
#include <vector>

#include "ir/graph/builder.h"

namespace heddle {

// These functions convert the operands of elementwise ops in cases where PyTorch's common type
// differs from the type in which heddle computes. Only FusionBuilder calls them.

// Converts the parameters of threshold and the value of addcmul from float scalars to integers if
// all tensors are integers. These scalars never turn the tensors into floats. Other ops stay
// unchanged. `operands` are the operands of the op `def`.
void fitParameters(FusionBuilder& b, const OpDef& def, std::vector<ValueId>& operands);

// Converts operands whose common type is `promoted`:
//  - A 0-d tensor that would widen the type of tensors with axes is cast to `promoted`.
//  - An i64 or i32 tensor is cast to `promoted` if that is a half type, except in cast and where.
//  - A scalar that is compared with a half type is rounded to the half type.
//  - Some ops on u8, i8 and i32 need the exact value of a scalar: they compare with it, divide or
//    shift by it, or select it. A literal out of the range of the type is then a UserError. Any
//    other scalar first wraps to the type.
//  - In sums, products and bit operations, scalars wrap together with the result.
//  - A bound of clamp, maximum and similar ops may be out of range if it then has no effect.
//    Otherwise a literal bound out of range is a UserError.
void fitOperands(FusionBuilder& b, const OpDef& def, std::vector<ValueId>& operands,
                 DType promoted);

}  // namespace heddle
