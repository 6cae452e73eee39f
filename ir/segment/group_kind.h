#pragma once

#include <string>

#include "ir/segment/segment.h"

namespace heddle {

// Returns the kind of the group to which the expression can belong. The expression must not be one
// that the host evaluates (isHostScalar() in ir/analysis/kernel_rules.h).
GroupKind kindOf(const Fusion& fusion, const Expression& expr);

// Returns a text for the reasons of a cut, such as "matmul of %y is a library call".
std::string whatItIs(const Fusion& fusion, const Expression& expr);

}  // namespace heddle
