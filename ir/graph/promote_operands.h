#pragma once

#include <string_view>
#include <vector>

#include "ir/graph/builder.h"

namespace heddle {

// What pointwise operands are made before an op meets them: PyTorch's common type, where it is not
// the type in which heddle computes. For the builder.

// Scalars that take the type of integer tensors instead of making floats of them: those of
// threshold and the value of addcmul. `operands` are of the op.
void fitParameters(FusionBuilder& b, const OpDef& def, std::vector<ValueId>& operands);

// Of operands promoted to `promoted`:
//  - 0-d tensors that would widen the type of tensors with axes become `promoted`;
//  - i64 and i32 tensors beside a half type become the half type;
//  - scalars compared with a half type are rounded to it;
//  - beside u8, i8 and i32, a literal that these do not hold is a UserError where it would be
//  another
//    number (not in sums, products and bits, which wrap; a bound of clamp that bounds nothing may
//    be beyond), and other scalars wrap to the type first.
void fitOperands(FusionBuilder& b, const OpDef& def, std::vector<ValueId>& operands,
                 DType promoted);

}  // namespace heddle
