#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// Where an Index op (flip, pad, take, take_along_axis) reads along one logical axis of operand 0.
struct IndexedAxis {
  // The place is computed from the index of the output's element along this axis; kByValue: the
  // place is the value of operand 1.
  static constexpr int kByValue = -1;
  int output_axis = kByValue;
  // Both move along the axis alike and are spread over devices alike; otherwise the operand is
  // whole along it on every rank.
  bool together = false;
  bool reversed = false;  // extent - 1 - index
  int64_t low = 0;        // index - low
  int64_t high = 0;       // elements after the operand's last one
  // Some places lie outside of the operand.
  bool mayMiss() const { return output_axis == kByValue || low > 0 || high > 0; }
};

// Per logical axis of operand 0.
std::vector<IndexedAxis> indexedAxesOf(const Fusion& fusion, const Expression& expr);

// Whether the operand is read at other places than the element that is computed: operand 0 of an
// Index op. Its axes are none of the kernel that reads it.
bool isIndexed(const Expression& expr, size_t operand);

// Inputs of a kernel segment that some expression reads so. None of them may lie on the memory of
// an output.
std::vector<ValueId> indexedInputs(const Fusion& segment);

}  // namespace heddle
