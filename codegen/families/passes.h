#pragma once

#include "codegen/kernel.h"
#include "codegen/plan/analysis.h"
#include "codegen/plan/space.h"
#include "ir/types/tensor.h"

namespace heddle::codegen {

// A segment of several passes (rule 4 of ir/analysis/kernel_rules.h) as several segments of one
// pass each. Results of reductions that a later segment reads are temporaries in the workspace.
// This serves all sizes for which one launch is slow: few and long rows, or rows whose elements are
// not neighbours.
struct PassSegment {
  Fusion segment;
  // Per operand of `segment`, its inputs and then its outputs: an operand of the complete segment,
  // or a temporary.
  struct Operand {
    int operand = -1;    // index into the inputs and then the outputs of the complete segment
    int temporary = -1;  // index into Passes::temporaries
  };
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
};

struct Passes {
  std::vector<PassSegment> segments;    // in the order in which they must run
  std::vector<TensorDesc> temporaries;  // dense, one element per row
};

// Divides a segment. All outputs are stored after the last read of an input, because an output may
// have the memory of an input.
Passes divideIntoPasses(const Fusion& segment, const Analysis& analysis,
                        const AxisExtents& extents);

}  // namespace heddle::codegen
