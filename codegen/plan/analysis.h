#pragma once

#include <vector>

#include "ir/graph/fusion.h"

namespace heddle::codegen {

// Where a kernel stores an output. Loop: in the loop over the full iteration space. Finish: after
// the reductions, in the loop over the axes that are not reduced (kept axes).
enum class Place : uint8_t { Loop, Finish };

// The structure of a segment, which is the part of a fusion that becomes one kernel. The kernel has
// one iteration space. Each axis of a value maps to an axis of this space, unless the value is
// broadcast along this axis. Axes of the space are numbered in order of first appearance.
struct Analysis {
  // axes[value][i]: the axis of the space to which logical axis i of the value maps; -1: none.
  IdVector<ValueId, std::vector<int>> axes;
  // Per axis of the space: true if reductions of the segment combine elements along this axis.
  std::vector<bool> reduced;
  IdVector<ValueId, bool> after;  // per value: it depends on a reduction of this segment
  std::vector<ExprId> reductions;
  std::vector<Place> places;  // per output of the segment
  // Per value: true if the value is an input of the segment that ops read only at computed indices.
  // The axes of such an input do not map to axes of the space.
  IdVector<ValueId, bool> indexed_only;
  std::vector<int> coordinates;  // axes of the space whose index an op needs, ascending
};

// Analyzes `segment`. Throws UserError with the text of whyNotOneKernel() if `segment` cannot be
// one kernel.
Analysis analyze(const Fusion& segment);

// Returns why the segment cannot be one generated kernel, or an empty string if it can.
// Segmentation (ir/segment) applies the same rules (ir/analysis/kernel_rules.h) when it divides a
// fusion into segments.
std::string whyNotOneKernel(const Fusion& segment);

}  // namespace heddle::codegen
