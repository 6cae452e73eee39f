#pragma once

#include <string>
#include <vector>

#include "ir/graph/fusion.h"
#include "ir/types/host_tensor.h"

namespace heddle::tools {

// The largest difference that is allowed between the outputs of two candidates (variants) of a
// kernel. Candidates add in different orders, so their rounding errors differ.
struct Tolerance {
  bool of_float_sums = false;  // the output derives from a sum, product, matrix product, scan
                               // or scatter of floats
  double relative = 0;         // the largest error, divided by the largest finite magnitude of the
                               // output
};

// Returns the tolerance of each output of a segment. An output has the tolerance of the least exact
// type of the computed values from which it derives. For example, an f64 that is cast from a
// computed f16 has the tolerance of f16.
std::vector<Tolerance> tolerancesOf(const Fusion& segment);

// Compares the outputs of two candidates of a kernel. Returns "" if they agree, otherwise a text
// about the first difference.
// - Floats may differ by their tolerance. Each infinity agrees only with itself, and NaN agrees
//   only with NaN.
// - Integers and bools must be equal. Exception: if Tolerance::of_float_sums is true, 1 % of the
//   elements may differ, because a rounding error can change a comparison. One element may differ
//   even if the output has fewer than 100 elements.
std::string differenceOf(const std::vector<HostTensor>& got, const std::vector<HostTensor>& wanted,
                         const std::vector<Tolerance>& tolerances);

// Returns a hash of the bits of all elements. All NaN of a type count as equal bits.
std::string hashOfBits(const std::vector<HostTensor>& outputs);

}  // namespace heddle::tools
