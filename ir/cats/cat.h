#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph/fusion.h"

namespace heddle {

// A cat that was found in a fusion. A cat is a tensor (the result) that consists of pieces, one
// after the other along an axis. In the fusion, many ops compute the result: for each element, they
// select the piece that contains it.
struct Cat {
  // The piece is the result's elements [start, stop) along the axis. The piece and the result have
  // the same dtype and the same extents along all other axes.
  struct Piece {
    ValueId value;
    Size start;
    Size stop;
    // Only for a cat whose pieces are written into the result (ir/segment/choose_cats.h). "": the
    // kernel that computes the piece writes it there. Any other text is the reason why the piece is
    // copied instead.
    std::string why_copied;
  };
  std::vector<ExprId> exprs;  // ascending; without the scalar expressions that the host evaluates
  ValueId result = kNoValue;
  size_t axis = 0;
  std::vector<Piece> pieces;  // at least two
};

// Returns the cats of a fusion, in the order of the fusion. A cat must have the form that
// ir/composite/shape.cpp writes. Expressions outside of the cat may read its result, and the result
// may be an output of the fusion. Neither is allowed for an intermediate value of the cat.
std::vector<Cat> catsOf(const Fusion& fusion);

}  // namespace heddle
