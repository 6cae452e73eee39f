#pragma once

#include <vector>

#include "ir/analysis/axis_map.h"

namespace heddle {

// Describes which axes of an expression can be split over devices. Every device can then compute
// its block of the result from its blocks of the operands. Most axes of the iteration space
// ("space", ir/analysis/axis_map.h) can be split, because their elements correspond in operands and
// result. Three kinds of ops have an axis whose elements do not correspond one to one, but which
// can still be split:
//  - reshape: a group of adjacent operand axes becomes a group of adjacent result axes. The
//    outermost axes of the two groups can be split together if the number of devices divides their
//    extents. A block then has the same elements in operand and result.
//  - take, take_along_axis: the axis of operand 0 from which the index selects. This axis becomes
//    an additional axis of the space, which is reduced by a sum. Each rank looks up the indices
//    that are in its block, and uses 0 for all other indices. The sum over the ranks is the result.
//  - scatter, scatter_add: the axis along which the op writes at indices. Each rank writes the
//    elements whose index is in its block.
struct ShardableAxes {
  AxisMap map;
  std::vector<bool> may;  // per axis of the space: whether it may be split
  // The outermost axis of a group of axes that a reshape regroups, in operand and result.
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

// Returns the shardable axes of an expression of the fusion.
ShardableAxes shardableAxesOf(const Fusion& fusion, const Expression& expr);

// Returns whether the expression is a take or take_along_axis that selects from a sharded axis of
// operand 0. Each rank then looks up only the indices within its block.
bool looksUpInBlocks(const Fusion& fusion, const Expression& expr);

}  // namespace heddle
