#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph/fusion.h"
#include "tools/heddle/gather.h"
#include "tools/heddle/source.h"

namespace heddle::tools {

// The result of comparing one output, or one rank's copy of the output, with the reference
// evaluation (ir/reference/reference.h).
struct OutputCheck {
  std::string name;
  int rank = -1;         // the rank that holds this copy; -1: the gathered output
  int64_t compared = 0;  // number of compared elements
  int64_t wrong = 0;     // number of wrong elements
  double max_error = 0;  // largest |got - expected|
  // The first wrong element, as in "[3, 5]: got 1.5, expected 1.25", or the reason why nothing
  // could be compared.
  std::string first_wrong = {};
  bool passed() const { return wrong == 0 && first_wrong.empty(); }
};

struct CheckOptions {
  std::string mode = "sample";  // or "full"
  double most_bytes = 2e9;      // of the values that the reference computes at once
  // Receives a line of text before each comparison: what is compared. May be empty.
  std::function<void(const std::string&)> announce = {};
};

// Compares gathered (unsharded) outputs with the reference.
// - Mode "full" compares every element. If the values of the reference need more than `most_bytes`,
//   it evaluates each output in slices.
// - Otherwise about 4096 elements of each output are compared, including the first and the last. If
//   they need more than about 10^10 operations, fewer are compared, at least 64.
// - A float is right if |got - expected| <= r * (|expected| + largest |expected|) with r = 1e-11
//   for f64, 2e-5 for f32, 3e-3 for f16, 2e-2 for bf16, 0.125 for f8e4m3 and 0.25 for f8e5m2. r
//   belongs to the loosest type of the output and of the values that it is computed from. `largest`
//   is taken over the elements that are compared at once.
// - If an element is not right by this rule, the reference is evaluated three more times, with
//   random errors of rounding size (ir/reference/noise.h). The bound of each element grows by 8
//   times its largest change. Thus an output that is a small difference of large terms, such as a
//   gradient that is zero except for rounding, is right if no better result can be expected.
// - Integers and bools must be equal. NaN matches NaN, and inf matches inf of the same sign.
//
// If copies of an output on several ranks differ in a bit, the gathered output contains the copy of
// the lowest rank. The check of the gathered output is then followed by one check of each copy that
// differs. These checks also compare the first element that differs, and so show which rank is
// wrong.
std::vector<OutputCheck> checkOutputs(const Fusion& fusion, const Inputs& inputs,
                                      const std::vector<Gathered>& outputs,
                                      const CheckOptions& options);

}  // namespace heddle::tools
