#pragma once

#include <string>

#include "ir/segment/segment.h"

namespace heddle {

// Returns the kind of the group to which the expression can belong. The caller handles the
// exceptions: a broadcast or expand may be a view (ir/segment/choose_views.h), and the ops of an
// attention or a cat may together be one group. The expression must not be one that the host
// evaluates (isHostScalar() in ir/analysis/kernel_rules.h).
GroupKind kindOf(const Fusion& fusion, const Expression& expr);

// Describes the expression for a message that says why groups are separate, such as "matmul of %y
// is a library call". `kind` is the kind of the group that contains the expression.
std::string whatItIs(const Fusion& fusion, const Expression& expr, GroupKind kind);
// Returns the name of an attention in messages, such as "attention backward of %dq".
std::string whatItIs(const Fusion& fusion, const Attention& attention);

}  // namespace heddle
