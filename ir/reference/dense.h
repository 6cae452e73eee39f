#pragma once

#include "ir/reference/elements.h"

namespace heddle {

// Evaluates all elements of one expression. The expression must not be a Constant or SizeOf.
// values[i] is the value of expr.inputs[i]. Its sizes are context.sizesOf(expr.inputs[i]).
HostTensor evaluateDense(const ReferenceContext& context, const Expression& expr,
                         const std::vector<HostTensor>& values);

}  // namespace heddle
