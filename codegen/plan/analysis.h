#pragma once

#include <vector>

#include "ir/graph/fusion.h"

namespace heddle::codegen {

// Position of the store of an output: inside the loop over the full space, or after the reductions,
// over the kept axes only.
enum class Place : uint8_t { Loop, Finish };

// The structure of a kernel segment: its one iteration space, and the axis of the space that each
// axis of each value maps to. Axes of the space are numbered in order of first appearance.
struct Analysis {
  IdVector<ValueId, std::vector<int>>
      axes;                       // [value][logical axis]: axis of the space, -1: broadcast
  std::vector<bool> reduced;      // per axis of the space
  IdVector<ValueId, bool> after;  // per value: depends on a reduction of this segment
  std::vector<ExprId> reductions;
  std::vector<Place> places;  // per output
  // Segment inputs that ops read only at computed indices. They do not follow the axes of the
  // space.
  IdVector<ValueId, bool> indexed_only;  // per value
  std::vector<int> coordinates;          // axes of the space whose index a body needs, ascending
};

// Analyzes `segment`. Throws UserError with the text of whyNotOneKernel() if it is not one kernel.
Analysis analyze(const Fusion& segment);

// Returns why the segment cannot be one generated kernel, or an empty string if it can. These are
// the rules by which segmentation separates ops (ir/analysis/kernel_rules.h).
std::string whyNotOneKernel(const Fusion& segment);

}  // namespace heddle::codegen
