#pragma once

#include "ir/reference/elements.h"

namespace heddle {

// Dense evaluation of one expression that is no leaf: values[i] belongs to expr.inputs[i].
HostTensor evaluateDense(const ReferenceContext& context, const Expression& expr,
                         const std::vector<HostTensor>& values);

}  // namespace heddle
