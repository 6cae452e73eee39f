#pragma once

#include <vector>

#include "ir/analysis/axis_map.h"

namespace heddle {

// How an expression may be spread over devices. Its axis map (ir/analysis/axis_map.h) says which
// elements move together; blocks move together in more cases:
//  - reshape: of axes that are regrouped, the outermost of each side, as long as both divide evenly
//    by the devices: a block of whole outer rows is the same block on both sides;
//  - take, take_along_axis: the axis that is read by value is one more axis of the space, reduced
//    by a sum: a rank looks up what lies in its block, and has 0 for the rest;
//  - scatter, scatter_add: the axis along which the index says where to put things: a rank puts
//  what
//    belongs in its block.
struct ShardableAxes {
  AxisMap map;
  std::vector<bool> may;  // per axis of the space: whether it may be spread
  struct Regrouped {
    int space;     // the axis of the space
    size_t input;  // of the operand
    Size from;     // extents of both
    Size to;
    bool splits;  // one axis of the operand becomes several
    bool merges;  // several become one

    // Whether both extents are multiples of `devices` whatever the sizes.
    bool isEven(int64_t devices) const;
  };
  std::vector<Regrouped> regrouped;

  const Regrouped* regroupedAt(size_t space) const;
};

ShardableAxes shardableAxesOf(const Fusion& fusion, const Expression& expr);

// Whether operand 0 of the expression is looked up by value along a sharded axis: each rank finds
// the places within its block.
bool looksUpInBlocks(const Fusion& fusion, const Expression& expr);

}  // namespace heddle
