#pragma once

#include <string_view>
#include <vector>

#include "ir/graph/builder.h"

namespace heddle {

// For some elementwise ops, PyTorch converts operands to other types than the general promotion
// rules (promoteOperands() in ir/ops/op.h) give. These functions insert the same conversions. Only
// FusionBuilder calls them.

// Converts float scalars to integers if all tensors are integers, so that the scalars do not turn
// the tensors into floats. The function converts the parameters of threshold and the value of
// addcmul, and changes no other op. `operands` are the operands of the op `def`. Throws UserError
// if a literal does not fit in i64.
void fitParameters(FusionBuilder& b, const OpDef& def, std::vector<ValueId>& operands);

// Converts operands whose common type is `promoted`:
//  - A 0-d tensor is cast to `promoted` if its own type would widen the result.
//  - An i64 or i32 tensor is cast to `promoted` if `promoted` is a half type (f16, bf16). The ops
//    cast and where are exceptions.
//  - In an op with a bool result, such as a comparison, a scalar is rounded to `promoted` if
//    `promoted` is a half type.
//  - Some ops on u8, i8 and i32 need the exact value of a scalar: they compare with it, divide or
//    shift by it, or select it. A literal that `promoted` cannot represent throws UserError. A
//    scalar that is not a literal is cast to `promoted`, and the cast wraps.
//  - In clamp, maximum and similar ops on u8, i8 and i32, a literal bound outside of the range of
//    the type throws UserError. Exception: a bound that cannot have an effect is allowed, such as
//    the lower bound -1 for u8.
//  - In all other ops on u8, i8 and i32, such as sums, products and bit operations, a scalar is not
//    converted, because the result wraps in any case.
void fitOperands(FusionBuilder& b, const OpDef& def, std::vector<ValueId>& operands,
                 DType promoted);

}  // namespace heddle
