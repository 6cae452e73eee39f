#pragma once

#include <string>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// One step of a reshape: `from` consecutive axes, beginning with `axis`, become `to` axes. `from`
// or `to` is 1, so the step merges axes or splits an axis.
struct AxisStep {
  int64_t axis = 0;
  int64_t from = 1;
  int64_t to = 1;
  bool operator==(const AxisStep&) const = default;
};

// The splits and merges of a reshape whose sizes depend on scalars. The sizes of a run decide the
// splits and merges, but a decision contains no sizes. For example, {8, 15, 7} -> {8, 3, 35} and
// {8, 15, 7} -> {8, 5, 21} give equal decisions. The steps of `first` are on the axes of the
// operand, and their axes do not overlap. The steps of `then` are on the axes of the result of
// `first`. If all steps are splits, or all are merges, they are in `first`, and `then` is empty.
struct ReshapeDecision {
  enum class Kind : uint8_t {
    Steps,  // `first` and `then` contain the steps
    // A size has no value, a negative value or an overflow, or operand and result differ in their
    // numbers of elements: the reshape stays as it is.
    Open,
    // The tensor has no elements, so its sizes decide no steps: the reshape stays as it is.
    Empty,
  };
  std::string value;  // the name of the result
  Kind kind = Kind::Steps;
  std::vector<AxisStep> first;
  std::vector<AxisStep> then;
  bool operator==(const ReshapeDecision&) const = default;
  // Returns a line such as "reshape %y: split axis 1 into 2; then merge axes 2 and 3\n".
  std::string str() const;
};

// Returns the decisions about all reshapes whose new sizes contain scalars, in the order of the
// fusion. The function first groups the axes by the symbolic expressions of their sizes
// (reshapeGroups() in ir/analysis/reshape_order.h). It uses the values in `sizes` only for groups
// that have several axes both in the operand and in the result. In such a group, axes of the
// operand are split into pieces, and the pieces are merged to the axes of the result. If no such
// splits exist, as in {4, 6} -> {6, 4}, the axes are merged and then split.
std::vector<ReshapeDecision> decideReshapes(const Fusion& fusion, const SizeBindings& sizes);

// Returns the sizes after the steps `first`. `in` and `out` are the sizes of the operand and of the
// result. Requires a decision with steps in both lists.
std::vector<Size> sizesBetween(const ReshapeDecision& decision, const std::vector<Size>& in,
                               const std::vector<Size>& out);

}  // namespace heddle
