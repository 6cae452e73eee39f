#pragma once

#include <functional>

#include "ir/graph/rewrite.h"

namespace heddle {

// Returns whether the op is flip, pad, take, take_along_axis, slice, permute, diagonal, reshape or
// set. Each element of the result of such an op is an element of operand 0, or a fill value.
bool picksElements(const Expression& expr);

// Returns whether an op of this kind computes a generated value if all its operands are generated
// values or scalars (ir/passes/take_generated.h).
bool generates(OpKind kind);

// Replaces an expression for which picksElements() is true. `expr` is an expression of `from`, the
// fusion that `rewriter` rebuilds. Operand 0 must be generated in the new fusion. The new
// expressions compute the indices of the elements, and then these elements from the indices. No new
// expression reads the data of operand 0. If the result has a sharding, all new tensors with the
// axes of the result get this sharding, except that their broadcast axes are not split. The
// sharding must not be partial. `is_generated` returns whether a value of the new fusion is
// generated.
void pickElements(const Fusion& from, ExprId expr, const std::function<bool(ValueId)>& is_generated,
                  FusionRewriter& rewriter);

}  // namespace heddle
