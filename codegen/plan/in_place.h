#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/plan/analysis.h"
#include "ir/graph/fusion.h"

namespace heddle::codegen {

// Decides which outputs of a segment its kernel may store in the memory of inputs. In such a
// kernel, the thread that stores an element must have read the same element of the input before. No
// thread may read this element afterwards. Every schedule guarantees both if all of these are true:
// - Input and output have the same dtype and the same axes of the iteration space
//   (codegen/plan/analysis.h), in the same order. They have either all axes of the space, or
//   exactly the axes that are not reduced. In the first case, no output that is stored after the
//   reductions depends on the input without a reduction in between. In the second case, the kernel
//   reads the input only after its reductions.
// - If the segment has reductions and some output depends on the input without a reduction in
//   between, the output that is stored in the input does so too. Otherwise a later launch
//   (codegen/families/sweeps.h) could read the input to compute another output.
// - No expression reads the input at computed indices.
// - If the segment consists of several parts (ir/analysis/independent_parts.h), only the part that
//   stores the output reads the input. All other conditions hold for this part alone.
// - The segment has no column reductions (rule 3 of ir/analysis/kernel_rules.h): they may read the
//   input again in a later launch.
class InPlaceRules {
 public:
  // Borrows the segment, which must outlive this object.
  explicit InPlaceRules(const Fusion& segment) : segment_(segment) {}

  // Returns "" if the kernel may store output `output` in the memory of input `input`, provided
  // that both are the same view of this memory. Otherwise returns the reason why the kernel may
  // not, with the names of the values. `input` and `output` are indices into segment.inputs() and
  // segment.outputs(). The first call analyzes the segment.
  std::string whyNot(size_t input, size_t output);

 private:
  const Fusion& segment_;
  std::optional<Analysis> analysis_;
  // Per operand of the segment: each part that has the operand, and the index of the operand in
  // SegmentPart::operands of this part. Empty if the segment has one part.
  std::vector<std::vector<std::pair<size_t, size_t>>> parts_of_;
};

}  // namespace heddle::codegen
