#pragma once

#include <vector>

#include "ir/analysis/axis_map.h"

namespace heddle {

// Says which axes of an expression can be split over devices. The axis map (ir/analysis/axis_map.h)
// says which elements of operands and result correspond. In three more cases blocks correspond,
// although elements do not:
//  - reshape: the outermost axes of a regrouped run on both sides, if the devices divide both
//    extents evenly. A block of complete outer rows is then the same block on both sides.
//  - take, take_along_axis: the axis that the index selects from is an additional axis of the
//    space, reduced by a sum. A rank looks up the indices in its block and has 0 for the others.
//  - scatter, scatter_add: the axis along which the index says where to write. A rank writes the
//    elements whose index is in its block.
struct ShardableAxes {
  AxisMap map;
  std::vector<bool> may;  // per axis of the space: whether it may be split
  struct Regrouped {
    int space;     // the axis of the space, which is that of the result
    size_t input;  // the axis of the operand
    Size from;     // extent of the operand's axis
    Size to;       // extent of the result's axis
    bool splits;   // one axis of the operand becomes several
    bool merges;   // several axes of the operand become one

    // Returns whether both extents are multiples of `devices` for all sizes.
    bool isEven(int64_t devices) const;
  };
  std::vector<Regrouped> regrouped;

  // Returns the regrouped axis with this index in the space; nullptr: there is none.
  const Regrouped* regroupedAt(size_t space) const;
};

// Returns the shardable axes of an expression of the fusion.
ShardableAxes shardableAxesOf(const Fusion& fusion, const Expression& expr);

// Returns whether take or take_along_axis selects from a sharded axis of operand 0. Each rank then
// looks up only the indices within its block.
bool looksUpInBlocks(const Fusion& fusion, const Expression& expr);

}  // namespace heddle
