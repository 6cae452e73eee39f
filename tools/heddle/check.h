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
  double max_error = 0;  // largest |got - expected| where both are finite
  // The first wrong element, as in "[3, 5]: got 1.5, expected 1.25", or the reason why nothing
  // could be compared.
  std::string first_wrong = {};
  bool passed() const { return wrong == 0 && first_wrong.empty(); }
};

struct CheckOptions {
  std::string mode = "sample";  // "sample" or "full"
  double most_bytes = 2e9;      // mode "full": limit for the bytes of the values that one
                                // reference evaluation computes
  // Called before each comparison, once for each output that it compares. The argument is a line of
  // text with the name of the output and the number of elements. May be empty.
  std::function<void(const std::string&)> announce = {};
};

// Compares gathered (unsharded) outputs with the reference.
// - Mode "full" compares every element. If the values of the reference need more than `most_bytes`,
//   the reference evaluates each output in slices along its longest axis. A slice may exceed the
//   limit if shorter slices would save little memory or are impossible.
// - Mode "sample" compares about 4096 elements of each output, including the first and the last
//   element. It compares all elements of a smaller output. If the reference needs more than 8.6e9
//   operations for the samples of all outputs, the samples are smaller, but they have about 64
//   elements or more.
// - Integers and bools must be equal. NaN matches NaN, and inf matches inf of the same sign.
// - A float is right if |got - expected| <= r * (|expected| + m). Here m is the largest finite
//   |expected| of the output in the sample or slice that is compared. The factor r is 1e-11 for
//   f64, 2e-5 for f32, 3e-3 for f16, 2e-2 for bf16, 0.125 for f8e4m3 and 0.25 for f8e5m2. If the
//   computation of the output rounds values to several types, the largest of their factors is used.
// - If an element is wrong by these rules, the comparison is repeated with larger bounds. The
//   reference is then evaluated three more times, with random errors of the size of rounding errors
//   (ir/reference/noise.h). The bound of each float grows by 8 times its largest change in these
//   evaluations. An element that is a small difference of large terms can then pass, for example a
//   gradient that is zero except for rounding.
//
// If copies of an output on several ranks differ in any bit, the gathered output contains the copy
// of the lowest rank. Each copy that differs is also compared with the reference. The compared
// elements include the first element that differs, so the result shows which rank is wrong.
std::vector<OutputCheck> checkOutputs(const Fusion& fusion, const Inputs& inputs,
                                      const std::vector<Gathered>& outputs,
                                      const CheckOptions& options);

}  // namespace heddle::tools
