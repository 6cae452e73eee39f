#pragma once

#include <string>
#include <vector>

#include "ir/graph/fusion.h"
#include "tools/heddle/gather.h"
#include "tools/heddle/source.h"

namespace heddle::tools {

// The result of comparing one output, or one rank's copy of it, with the reference evaluator.
struct OutputCheck {
  std::string name;
  int rank = -1;         // the rank whose copy it is, if copies differ; -1: the gathered output
  int64_t compared = 0;  // elements
  int64_t wrong = 0;
  double max_error = 0;  // largest |got - expected|
  std::string first_wrong =
      {};  // "[3, 5]: got 1.5, expected 1.25", or why nothing could be compared
  bool passed() const { return wrong == 0 && first_wrong.empty(); }
};

// Compares gathered (unsharded) outputs with the reference.
// - Mode "full" compares every element. Otherwise about 4096 elements of each output are compared,
//   including the first and the last. If an element depends on a long reduction, fewer are
//   compared, at least 64.
// - A float is right if |got - expected| <= r * (|expected| + largest |expected|) with r = 1e-11
//   for f64, 2e-5 for f32, 3e-3 for f16, 2e-2 for bf16, 0.125 for f8e4m3 and 0.25 for f8e5m2. r
//   belongs to the loosest type of the output and of the values that it is computed from.
// - Integers and bools must be equal. NaN matches NaN, and inf matches inf of the same sign.
// - The bound is too strict for an output that is a small difference of much larger terms, such as
//   a gradient that is zero except for rounding.
//
// If ranks hold copies of an output that differ in a bit, the gathered output contains the copy of
// the lowest rank. Its check is followed by one check of each other copy, which also compares the
// first element that differs. Thus the checks show which rank is wrong.
std::vector<OutputCheck> checkOutputs(const Fusion& fusion, const Inputs& inputs,
                                      const std::vector<Gathered>& outputs,
                                      const std::string& mode);

}  // namespace heddle::tools
