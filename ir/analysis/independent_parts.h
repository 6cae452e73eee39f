#pragma once

#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// A segment may consist of several independent parts that share one launch
// (ir/segment/join_independent.h). Each part has its own iteration space and must satisfy the rules
// of kernels (ir/analysis/kernel_rules.h) on its own.
//
// Two expressions belong to the same part, directly or through other expressions, if
// - one reads a tensor that the other computes, or
// - both read the same input of the segment, and this input has axes.
//
// Parts may share scalars and inputs without axes. Expressions on scalars belong to no part, and
// neither does a `full` without axes that the segment does not return.

// Returns the expressions of each part, in the order of the segment. The parts are in the order of
// their first expressions. If an output of the segment is also an input, or is returned twice, the
// segment has one part.
std::vector<std::vector<ExprId>> independentParts(const Fusion& segment);

// One part, extracted as a separate segment.
struct SegmentPart {
  Fusion segment;
  // `operands` has one entry for each input of this part, and then one for each output. An entry is
  // the index of the operand in the list of all inputs and then all outputs of the complete
  // segment.
  std::vector<int> operands;
};

// Returns the parts as separate segments. Requires that the segment has several parts. Each part
// contains copies of the expressions on scalars, and of the `full` without axes, that it needs.
// Values keep their names. Inputs are in the order of use.
std::vector<SegmentPart> extractParts(const Fusion& segment);

}  // namespace heddle
