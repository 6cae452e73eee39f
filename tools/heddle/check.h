#pragma once

#include <string>
#include <vector>

#include "ir/graph/fusion.h"
#include "tools/heddle/gather.h"
#include "tools/heddle/source.h"

namespace heddle::tools {

// One output, or one rank's own copy of it, against the reference evaluator.
struct OutputCheck {
  std::string name;
  int rank = -1;         // whose copy, where copies differ; -1: the whole output
  int64_t compared = 0;  // elements
  int64_t wrong = 0;
  double max_error = 0;  // largest |got - expected|
  std::string first_wrong =
      {};  // "[3, 5]: got 1.5, expected 1.25", or why nothing could be compared
  bool passed() const { return wrong == 0 && first_wrong.empty(); }
};

// Compares whole (unsharded) outputs: every element, or about 4096 of each output including the
// first and the last; fewer, at least 64, where each depends on a long reduction. An element is
// right when |got - expected| <= r * (|expected| + largest |expected|) with r = 1e-11 for f64, 2e-5
// for f32, 2e-2 for bf16 (three decimal digits and the rounding of each op), the loosest of the
// types in which the output and what it is computed from are; integers and bools must be equal; NaN
// matches NaN, inf the same inf. Where a whole result is what much larger terms leave of each other
// (a gradient that vanishes but for rounding), the bound is too strict.
//
// Where ranks hold copies of an element that differ in some bit, the check of the whole, which has
// that of the lowest rank, is followed by one of each other copy, with its first element that
// differs among those compared: so it is said which rank is wrong.
std::vector<OutputCheck> checkOutputs(const Fusion& fusion, const Inputs& inputs,
                                      const std::vector<Gathered>& outputs,
                                      const std::string& mode);

}  // namespace heddle::tools
