#pragma once

#include "ir/reference/elements.h"

namespace heddle {

// Ops that make elements from their place (Full, Iota) or move them by data: everything whose reads
// are no strided walk.
inline bool isIndexed(OpKind kind) {
  return kind == OpKind::Full || kind == OpKind::Iota || kind == OpKind::Index ||
         kind == OpKind::Scan || kind == OpKind::Scatter;
}

// Dense evaluation of one such expression: values[i] belongs to expr.inputs[i]. An index outside
// its tensor reads and puts nothing, as ir/graph/builder.h says.
HostTensor evaluateIndexed(const ReferenceContext& context, const Expression& expr,
                           const std::vector<HostTensor>& values);

}  // namespace heddle
