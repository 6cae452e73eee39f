#pragma once

#include <vector>

#include "codegen/plan/analysis.h"
#include "codegen/plan/body.h"
#include "codegen/plan/space.h"

namespace heddle::codegen {

// Which tensors the loops of a segment use. This does not depend on shapes. `tensors` contains
// indices into Space::tensors. Higher indices stand for the tensors of partial results. `indexed`
// contains indices into Space::indexed. A kernel has one launch (`whole`) or two launches (`first`,
// `second`; codegen/plan/two_stages.h).
struct LoopTensors {
  struct Used {
    std::vector<int> tensors;
    std::vector<int> indexed;
  };
  Used whole;
  Used first;
  Used second;
  std::vector<DType> partials;  // the types of the partial results
};

// `space` must list every operand that the space of the segment has for some shapes. Its extents
// and strides do not matter.
LoopTensors loopTensors(const Computation& computation, Space space);

// Removes all tensors from `space` that `used` does not list. The result is that of
// dropUnusedTensors() (codegen/plan/two_stages.h), but this function need not search the bodies
// again.
void keepOnly(const LoopTensors::Used& used, Space& space);

}  // namespace heddle::codegen
