#pragma once

#include <string>
#include <vector>

#include "ir/graph/fusion.h"
#include "ir/types/host_tensor.h"

namespace heddle::tools {

// Returns, per output of a segment, whether it derives from a sum or product of floats. Candidates
// add in different orders, so such a value has rounding errors.
std::vector<bool> outputsOfFloatSums(const Fusion& segment);

// Compares the outputs of two candidates of a kernel. Returns "" if they agree, or the first
// difference. `of_float_sums` has the flags of outputsOfFloatSums(); a missing flag is false.
// - Floats may differ by rounding errors, relative to the largest finite element of the output.
//   Infinity and NaN agree only with themselves.
// - Integers and bools must be equal. Exception: if they derive from sums of floats, 1 % of the
//   elements may differ, because a rounding error can change a comparison. One element may differ
//   even if the output has fewer than 100 elements.
std::string differenceOf(const std::vector<HostTensor>& got, const std::vector<HostTensor>& wanted,
                         const std::vector<bool>& of_float_sums = {});

// Returns a hash of the bits of all elements. All NaN of a type count as equal bits.
std::string hashOfBits(const std::vector<HostTensor>& outputs);

}  // namespace heddle::tools
