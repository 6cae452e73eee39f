#pragma once

#include <vector>

#include "codegen/plan/analysis.h"
#include "codegen/plan/body.h"
#include "codegen/plan/space.h"

namespace heddle::codegen {

// The tensors that the loops of a segment use. They do not depend on shapes. A kernel has one loop
// (`whole`) or two halves (`first`, `second`; codegen/families/loops.h).
struct LoopTensors {
  struct Used {
    // Indices into Space::tensors. The tensors of partial results follow after all others there.
    std::vector<int> tensors;
    std::vector<int> indexed;  // indices into Space::indexed
  };
  Used whole;
  Used first;
  Used second;
  std::vector<DType> partials;  // the types of the partial results
};

// Returns the tensors that `computation` uses. `space` may be the space of the segment for any
// shapes, because its extents and strides do not matter.
LoopTensors loopTensors(const Computation& computation, Space space);

// Keeps only the tensors of `space` that `used` lists, in the order of the lists. The result is the
// same as with dropUnusedTensors() (codegen/families/loops.h), but this function need not search
// the bodies (codegen/plan/body.h) for tensors.
void keepOnly(const LoopTensors::Used& used, Space& space);

}  // namespace heddle::codegen
