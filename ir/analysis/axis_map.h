#pragma once

#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Describes which axes of the operands and of the result of one expression correspond. Sharding
// propagation, segmentation and codegen read the structure of an op only from here.
//
// The iteration space consists of the axes of the result and the reduced axes. Operands and results
// list, per logical axis, the index of the corresponding axis of the space. Examples:
//
//   matmul  [t, h] x [h, f]     space [t, f, h:reduction]; inputs {0, 2}, {2, 1}; output {0, 1}
//   linear  [t, h], [f, h], [f] space [t, f, h:reduction]; inputs {0, 2}, {1, 2}, {1}
//   sum     [a, b, c] axes=[0]  space [a:reduction, b, c]; input {0, 1, 2}; output {1, 2}
//   permute [a, b] axes=[1, 0]  space [b, a]; input {1, 0}; output {0, 1}
struct AxisMap {
  // The logical axis corresponds to no axis of the space. Examples: an axis that is broadcast, that
  // a slice shortens, that a reshape regroups, that keepdim leaves with one element, or along which
  // an op reads at computed indices.
  static constexpr int kNone = -1;
  std::vector<IterDomain> space;
  std::vector<std::vector<int>> inputs;  // [operand][logical axis]; a scalar has an empty list
  std::vector<std::vector<int>> outputs;
};

// Returns the axis map of an expression of the fusion.
AxisMap axisMapOf(const Fusion& fusion, const Expression& expr);

}  // namespace heddle
