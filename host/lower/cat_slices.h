#pragma once

#include <utility>

#include "host/program/instructions.h"
#include "ir/segment/segment.h"

namespace heddle::host {

// Returns the bounds and steps of a `slice` expression.
Alias::Slice sliceOf(const Expression& slice);

// Returns the slice of the cat's result that stores the piece. A cat is a tensor, its result, into
// which other groups (ir/segment/segment.h) write their results, the pieces.
Alias::Slice sliceOf(const Fusion& fusion, const Cat& cat, const Cat::Piece& piece);

// Finds the values of a segmented fusion that are stored as slices of the result of a cat.
// `segmented` must outlive the object.
class CatSlices {
 public:
  explicit CatSlices(const SegmentedFusion& segmented);

  // Returns the cat in whose result the value is stored. nullptr: the value is no piece of a cat,
  // or a Copy moves it into the result.
  const Cat* catOf(ValueId id) const { return pieces_[id].first; }
  // Returns the slice in which the value is stored. Requires that catOf(id) is not nullptr.
  Alias::Slice sliceOf(ValueId id) const;

 private:
  const Fusion& fusion_;
  IdVector<ValueId, std::pair<const Cat*, const Cat::Piece*>> pieces_;
};

}  // namespace heddle::host
