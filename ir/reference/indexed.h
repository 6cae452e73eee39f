#pragma once

#include "ir/reference/elements.h"

namespace heddle {

// Returns whether the reads of an op are not a strided walk: ops that create elements (Full, Iota),
// and ops that move elements to computed indices.
inline bool isIndexed(OpKind kind) {
  return kind == OpKind::Full || kind == OpKind::Iota || kind == OpKind::Index ||
         kind == OpKind::Scan || kind == OpKind::Scatter;
}

// Evaluates all elements of such an expression. values[i] is the value of expr.inputs[i].
// ir/graph/builder.h states what an index out of range does.
HostTensor evaluateIndexed(const ReferenceContext& context, const Expression& expr,
                           const std::vector<HostTensor>& values);

}  // namespace heddle
