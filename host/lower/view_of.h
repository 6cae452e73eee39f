#pragma once

#include "host/program/alias.h"
#include "ir/graph/fusion.h"

namespace heddle::host {

// Returns how the result of the expression views the memory of its operand. The expression must
// belong to a group of the kind Metadata (ir/segment/segment.h).
Alias::View viewOf(const Fusion& fusion, const Expression& expr);

}  // namespace heddle::host
