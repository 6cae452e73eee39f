#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Describes at which index an Index op (flip, pad, take, take_along_axis) reads operand 0 along one
// logical axis.
struct IndexedAxis {
  // The operand's index is computed from the index of the output element along this axis. kByValue:
  // the operand's index is the value of operand 1.
  static constexpr int kByValue = -1;
  int output_axis = kByValue;
  // The indices of operand and output are equal along the axis, so both are split over devices in
  // the same way. Otherwise every rank needs the unsplit axis, except where looksUpInBlocks()
  // (ir/analysis/shardable_axes.h).
  bool together = false;
  bool reversed = false;  // flip: the operand's index is extent - 1 - index
  int64_t low = 0;        // pad: the operand's index is index - low
  int64_t high = 0;       // pad: output elements after the last element of the operand
  // Returns whether an index may lie outside of the operand.
  bool mayMiss() const { return output_axis == kByValue || low > 0 || high > 0; }
};

// Returns one entry per logical axis of operand 0. The expression must be an Index op.
std::vector<IndexedAxis> indexedAxesOf(const Fusion& fusion, const Expression& expr);

// Returns whether the expression reads this operand at computed indices. This is the case for
// operand 0 of an Index op. The axes of such an operand are no axes of the kernel that reads it.
bool isIndexed(const Expression& expr, size_t operand);

// Returns the inputs of a kernel segment that an expression reads at computed indices, without
// duplicates. Such an input must not share memory with an output of the kernel.
std::vector<ValueId> indexedInputs(const Fusion& segment);

}  // namespace heddle
