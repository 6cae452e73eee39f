#pragma once

#include "ir/reference/elements.h"

namespace heddle {

// Evaluates all elements of one expression, which is not a leaf. values[i] is the value of
// expr.inputs[i].
HostTensor evaluateDense(const ReferenceContext& context, const Expression& expr,
                         const std::vector<HostTensor>& values);

}  // namespace heddle
