#pragma once

#include <string>
#include <vector>

#include "codegen/plan/analysis.h"
#include "ir/types/tensor.h"

namespace heddle::codegen {

// A tensor as the loops of one kernel see it: a stride for each axis of the space (0 where the
// tensor does not move).
struct SpaceTensor {
  int operand = 0;  // inputs, then outputs, of the segment; kWorkspace
  DType dtype = DType::F32;
  bool output = false;
  std::vector<int64_t> strides;  // elements, per axis of the space
  int64_t base = 0;              // elements before the first; used within the workspace
};

// The index of the current element along an axis of the segment whose index some body needs. Such
// an axis is merged with no other.
struct SpaceCoordinate {
  int axis = -1;       // of the space; -1: the axis has one element
  int64_t offset = 0;  // unsharded index of the rank's element 0
};

// A tensor read at computed places, whatever the axes of the space.
struct IndexedTensor {
  int operand = 0;
  DType dtype = DType::F32;
  std::vector<int64_t> extents;  // on this rank, per logical axis
  std::vector<int64_t> global;   // unsharded
  std::vector<int64_t> offsets;  // unsharded index of the rank's element 0
  std::vector<int64_t> strides;  // elements, per logical axis
};

// The iteration space of one launch after coalescing. Kept axes come first, then reduced axes,
// each outermost to innermost. A segment with reductions has at least one reduced axis, and every
// space has at least one kept axis; extent-1 axes stand in where there is none.
struct Space {
  std::vector<int64_t> extents;
  int kept = 0;  // how many of the axes are kept
  std::vector<SpaceTensor> tensors;
  std::vector<SpaceCoordinate> coordinates;  // as Analysis::coordinates
  std::vector<IndexedTensor> indexed;        // in the order of the segment's inputs

  int64_t keptCount() const;
  int64_t reducedCount() const;  // 1 when nothing is reduced
  bool hasReduced() const { return kept < static_cast<int>(extents.size()); }
};

// Lays the operands over the space of `analysis`, drops extent-1 axes, orders kept and reduced axes
// by strides, and merges neighbours where every tensor's strides allow. Extents come from the
// descriptors. UserError when two descriptors disagree about an axis.
Space coalesce(const Fusion& segment, const Analysis& analysis,
               const std::vector<TensorDesc>& inputs, const std::vector<TensorDesc>& outputs);

}  // namespace heddle::codegen
