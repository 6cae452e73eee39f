#pragma once

#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Describes, for one expression, which axes of the operands correspond to which axes of the result.
// Sharding propagation, segmentation and code generation use this description.
//
// The iteration space ("space") of an expression consists of the axes of the result and the reduced
// axes. Each operand and each result has a list with one entry per logical axis. The entry is the
// index of the corresponding axis of the space. Examples:
//
//   matmul  [t, h] x [h, f]     space [t, f, h:reduction]; inputs {0, 2}, {2, 1}; output {0, 1}
//   linear  [t, h], [f, h], [f] space [t, f, h:reduction]; inputs {0, 2}, {1, 2}, {1}
//   sum     [a, b, c] axes=[0]  space [a:reduction, b, c]; input {0, 1, 2}; output {1, 2}
//   permute [a, b] axes=[1, 0]  space [b, a]; input {1, 0}; output {0, 1}
struct AxisMap {
  // The entry of a logical axis that corresponds to no axis of the space:
  //  - an axis of one element that is broadcast to a larger extent
  //  - an axis that a slice shortens
  //  - an axis that a reshape regroups (splits into several axes, or merges with neighbouring
  //    axes), or that lies between two regrouped axes
  //  - an axis of one element that a reduction keeps (`keepdim`)
  //  - the two axes of which `diagonal` takes the diagonal
  //  - an axis along which an op reads or writes at computed indices
  //  - an axis along which an op needs all elements at once (cumsum, argsort, scatter)
  //  - every axis of the operand of `size`, which reads no element
  static constexpr int kNone = -1;
  std::vector<IterDomain> space;
  std::vector<std::vector<int>> inputs;  // [operand][logical axis]; a scalar has an empty list
  std::vector<std::vector<int>> outputs;
};

AxisMap axisMapOf(const Fusion& fusion, const Expression& expr);

}  // namespace heddle
