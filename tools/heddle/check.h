#pragma once

#include <string>
#include <vector>

#include "ir/fusion.h"
#include "ir/host_tensor.h"
#include "tools/heddle/source.h"

namespace heddle::tools {

// One output against the reference evaluator.
struct OutputCheck {
  std::string name;
  int64_t compared = 0;  // elements
  int64_t wrong = 0;
  double max_error = 0;     // largest |got - expected|
  std::string first_wrong;  // "[3, 5]: got 1.5, expected 1.25", or why nothing could be compared
  bool passed() const { return wrong == 0 && first_wrong.empty(); }
};

// Compares whole (unsharded) outputs: every element, or about 4096 of each output including the
// first and the last; fewer, at least 64, where each depends on a long reduction. An element is
// right when |got - expected| <= r * (|expected| + largest |expected|) with r = 1e-11 for f64, 2e-5
// for f32, 2e-2 for bf16 (three decimal digits and the rounding of each op); integers and bools
// must be equal; NaN matches NaN, inf the same inf.
std::vector<OutputCheck> checkOutputs(const Fusion& fusion, const Inputs& inputs,
                                      const std::vector<HostTensor>& outputs,
                                      const std::string& mode);

}  // namespace heddle::tools
