#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// An Index op (flip, pad, take, take_along_axis) reads operand 0 at computed indices. This struct
// describes how the op computes the index along one logical axis of operand 0.
struct IndexedAxis {
  // The output axis whose index determines the operand's index. kByValue: the operand's index is an
  // element of operand 1.
  static constexpr int kByValue = -1;
  int output_axis = kByValue;
  // true: the operand's index equals the output's index. Operand and output are then split over
  // devices in the same way. false: every rank needs the unsplit axis. Exception: if
  // looksUpInBlocks() (ir/analysis/shardable_axes.h) is true for the expression, a rank needs only
  // its block.
  bool together = false;
  bool reversed = false;  // flip: the operand's index is extent - 1 - the output's index
  Size low;               // pad: the operand's index is the output's index - low
  Size high;              // pad: output elements after the last element of the operand

  // Returns whether the operand's index is the output's index.
  bool isSame() const {
    return output_axis != kByValue && !reversed && low.isConstant(0) && high.isConstant(0);
  }
  // Returns whether the computed index may be outside of the operand.
  bool mayMiss() const { return output_axis == kByValue || mayAdd(low) || mayAdd(high); }

 private:
  static bool mayAdd(const Size& n) { return !n.isConstant() || n.constant() > 0; }
};

// Returns one entry per logical axis of operand 0. The expression must be an Index op.
std::vector<IndexedAxis> indexedAxesOf(const Fusion& fusion, const Expression& expr);

// Returns whether the expression reads this operand at computed indices. This is true only for
// operand 0 of an Index op. The axes of this operand are not axes of the iteration space of the
// kernel that reads it (ir/analysis/kernel_rules.h).
bool isIndexed(const Expression& expr, size_t operand);

// Returns the inputs of `segment` that some expression reads at computed indices, without
// duplicates. `segment` contains the expressions of one kernel (extract() in ir/segment/segment.h).
// None of these inputs may share memory with an output of the kernel, because the kernel could
// overwrite an element before it reads the element.
std::vector<ValueId> indexedInputs(const Fusion& segment);

}  // namespace heddle
