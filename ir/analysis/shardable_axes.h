#pragma once

#include <vector>

#include "ir/analysis/axis_map.h"

namespace heddle {

// Describes which axes of an expression can be split over devices. Each device must be able to
// compute its block of the result from its blocks of the operands. Most axes of the iteration space
// (ir/analysis/axis_map.h) can be split. The following axes can be split too, although an AxisMap
// maps them to no axis of the space (kNone):
//  - reshape: the outermost axis of each group of axes that the reshape splits or merges. The
//    number of devices must divide the extent of this axis in operand and result. For example, [8,
//    3] -> [24] over 4 devices: a device has 2 of 8 rows, which are 6 of 24 elements.
//  - take, take_along_axis: the axis from which the index selects. It becomes an additional axis of
//    the space, which is reduced by a sum. A rank looks up the indices that are in its block and
//    gives -0.0 (integers: 0) for all others, so that the sum over the ranks is the selected
//    element. Tensors of f8 types are excluded, because f8 elements cannot be summed.
//  - scatter, scatter_add: the axis along which the index says where to write. A rank writes the
//    elements whose index is in its block.
struct ShardableAxes {
  AxisMap map;
  std::vector<bool> may;  // per axis of the space: whether it may be split
  // The outermost axis of a group of axes that a reshape regroups, in operand and result. Axes of
  // the constant extent 1 are skipped.
  struct Regrouped {
    int space;     // index of the axis in the space and in the result
    size_t input;  // the axis of the operand
    Size from;     // extent of the operand's axis
    Size to;       // extent of the result's axis
    bool splits;   // one axis of the operand becomes several
    bool merges;   // several axes of the operand become one

    // Returns whether both extents are multiples of `devices`, whatever values their symbols have.
    bool isEven(int64_t devices) const;
  };
  std::vector<Regrouped> regrouped;

  // Returns the regrouped axis with this index in the space, or nullptr if there is none.
  const Regrouped* regroupedAt(size_t space) const;
};

ShardableAxes shardableAxesOf(const Fusion& fusion, const Expression& expr);

// Returns whether the expression is a take or take_along_axis that selects from a sharded axis of
// operand 0. Each rank then looks up only the indices within its block.
bool looksUpInBlocks(const Fusion& fusion, const Expression& expr);

}  // namespace heddle
