#pragma once

#include <cstddef>
#include <string>

#include "ir/graph/fusion.h"

namespace heddle::codegen {

// Returns "" if the kernel of a segment may store output `output` in the memory of input `input`.
// Both must then be the same view of this memory. Otherwise returns the reason why it may not, with
// the names of the values. `input` and `output` are positions in segment.inputs() and
// segment.outputs().
//
// Every schedule guarantees that the thread that stores an element has read the same element of the
// input before, and that no thread reads it afterwards, if these conditions hold:
// - Input and output have the same dtype and the same axes of the iteration space
//   (codegen/plan/analysis.h), in the same order. They have all axes of the space. Or they have
//   exactly the axes that are not reduced, and the kernel reads the input only after its
//   reductions.
// - No expression reads the input at computed indices.
// - The segment has no column reductions (rule 3 of ir/analysis/kernel_rules.h): they may read the
//   input again in a later launch.
std::string whyNotInPlace(const Fusion& segment, size_t input, size_t output);

}  // namespace heddle::codegen
