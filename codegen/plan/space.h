#pragma once

#include <string>
#include <vector>

#include "codegen/plan/analysis.h"
#include "ir/types/tensor.h"

namespace heddle::codegen {

// A tensor as the loops of one kernel access it: one stride per axis of the space (0 along axes
// that the tensor does not have).
struct SpaceTensor {
  int operand = 0;  // index among inputs, then outputs of the segment; or kWorkspace
  DType dtype = DType::F32;
  bool output = false;
  std::vector<int64_t> strides;  // elements, per axis of the space
  int64_t base = 0;              // offset of the first element; only for tensors in the workspace
};

// The index of the current element along an axis whose index a body uses. Such an axis is never
// merged with another one.
struct SpaceCoordinate {
  int axis = -1;       // of the space; -1: the axis has one element
  int64_t offset = 0;  // unsharded index of the rank's element 0
};

// A tensor that is read at computed indices. It does not follow the axes of the space.
struct IndexedTensor {
  int operand = 0;
  DType dtype = DType::F32;
  std::vector<int64_t> extents;  // on this rank, per logical axis
  std::vector<int64_t> global;   // unsharded
  std::vector<int64_t> offsets;  // unsharded index of the rank's element 0
  std::vector<int64_t> strides;  // elements, per logical axis
};

// The iteration space of one launch after coalescing. Kept axes come first, then reduced axes, each
// group from outermost to innermost. A space of a segment with reductions has at least one reduced
// axis, and every space has at least one kept axis; an axis of extent 1 is added if necessary.
struct Space {
  std::vector<int64_t> extents;
  int kept = 0;  // number of kept axes
  std::vector<SpaceTensor> tensors;
  std::vector<SpaceCoordinate> coordinates;  // in the order of Analysis::coordinates
  std::vector<IndexedTensor> indexed;        // in the order of the segment's inputs

  int64_t keptCount() const;
  int64_t reducedCount() const;  // 1 when nothing is reduced
  bool hasReduced() const { return kept < static_cast<int>(extents.size()); }
};

// Maps the operands to the space of `analysis`, drops axes of extent 1, orders kept and reduced
// axes by strides, and merges neighbouring axes where the strides of every tensor allow it. Extents
// come from the descriptors. Throws UserError if two descriptors disagree about an axis.
Space coalesce(const Fusion& segment, const Analysis& analysis,
               const std::vector<TensorDesc>& inputs, const std::vector<TensorDesc>& outputs);

}  // namespace heddle::codegen
