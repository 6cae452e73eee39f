#pragma once

#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// The iteration space of one expression and where each operand's axes lie in it. Sharding
// propagation, segmentation and codegen all read an op's structure from here and nowhere else.
//
//   matmul  [t, h] x [h, f]     space [t, f, h:reduction]; inputs {0, 2}, {2, 1}; output {0, 1}
//   linear  [t, h], [f, h], [f] space [t, f, h:reduction]; inputs {0, 2}, {1, 2}, {1}
//   sum     [a, b, c] axes=[0]  space [a:reduction, b, c]; input {0, 1, 2}; output {1, 2}
//   permute [a, b] axes=[1, 0]  space [b, a]; input {1, 0}; output {0, 1}
struct AxisMap {
  static constexpr int kNone = -1;  // the axis does not move with the space: a broadcast axis, an
                                    // axis that is cut by slice or regrouped by reshape
  std::vector<IterDomain> space;
  std::vector<std::vector<int>> inputs;  // [operand][logical axis]; empty list for scalars
  std::vector<std::vector<int>> outputs;
};

AxisMap axisMapOf(const Fusion& fusion, const Expression& expr);

}  // namespace heddle
