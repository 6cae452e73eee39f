#pragma once

#include "ir/reference/elements.h"

namespace heddle {

// Returns true for kinds of ops whose reads cannot be described by strides (Accesses in
// ir/reference/elements.h). These are:
//  - ops that create elements (Full, Iota)
//  - ops that read or write at computed indices (Index, Scatter)
//  - ops that need all elements along an axis (Scan)
inline bool isIndexed(OpKind kind) {
  return kind == OpKind::Full || kind == OpKind::Iota || kind == OpKind::Index ||
         kind == OpKind::Scan || kind == OpKind::Scatter;
}

// Evaluates all elements of an expression for which isIndexed() is true. values[i] is the value of
// expr.inputs[i]. FusionBuilder (ir/graph/builder.h) describes the effect of an index out of range.
HostTensor evaluateIndexed(const ReferenceContext& context, const Expression& expr,
                           const std::vector<HostTensor>& values);

}  // namespace heddle
