#pragma once

#include <boost/container/small_vector.hpp>
#include <string>
#include <vector>

#include "codegen/kernel.h"
#include "codegen/plan/analysis.h"
#include "codegen/plan/desc_list.h"
#include "ir/types/tensor.h"

namespace heddle::codegen {

// One number per axis. A kernel is planned in about a microsecond, so the list allocates no memory
// if there are few axes.
using AxisNumbers = boost::container::small_vector<int64_t, 6>;
// Indices of axes of a space.
using AxisPositions = boost::container::small_vector<size_t, 6>;

// A tensor as the loops of one kernel access it, with one stride per axis of the iteration space.
// If the tensor does not have an axis of the space, its stride along this axis is 0.
struct SpaceTensor {
  // Index into the inputs and then the outputs of the segment; or LaunchStage::kWorkspace.
  int operand = 0;
  DType dtype = DType::F32;
  bool output = false;
  AxisNumbers strides;  // elements, per axis of the space
  int64_t base = 0;     // for tensors in the workspace: offset of the first element, in elements
  // For outputs in the workspace: the distance between the partial results of neighbouring parts,
  // in elements. A part is one of Schedule::splits ranges, or one of the parts of rows whose column
  // sums are stored separately (ColumnSums in codegen/tile/program.h).
  int64_t part_stride = 0;
  // Not negative: the kernel reduces the elements over the rows and stores only the states of each
  // part, in the workspace (ColumnSums). `column` is then the AccumulatorId of this reduction, and
  // `operand` is an output that has no memory. -1: an ordinary tensor.
  int column = -1;
  int32_t alignment = kFullAlignment;  // alignment of the first element, in bytes

  bool isInWorkspace() const { return operand == LaunchStage::kWorkspace || column >= 0; }
};

using CoordinateId = Id<struct CoordinateTag>;  // index into Space::coordinates

// An axis of the space along which a kernel body uses the index of the current element. coalesce()
// merges it only with axes that mergeIndexedAxes() permits (codegen/plan/merge_indexed_axes.h).
struct SpaceCoordinate {
  int axis = -1;         // index into Space::extents; -1: the axis has one element
  int64_t offset = 0;    // index of this rank's first element in the unsharded tensor
  bool shifted = false;  // the axis is in Analysis::shifted
};

// A tensor that is read at computed indices. Its axes need not be axes of the space. If two of its
// axes are merged, the inner one has the elements of both, and the outer one has one element.
struct IndexedTensor {
  int operand = 0;
  DType dtype = DType::F32;
  AxisNumbers extents;  // extents of this rank's shard, per logical axis
  AxisNumbers global;   // extents of the unsharded tensor
  AxisNumbers offsets;  // index of the shard's first element in the unsharded tensor
  AxisNumbers strides;  // elements, per logical axis
};

// The iteration space of one launch. Reductions combine elements along the *reduced* axes. All
// other axes are *kept* axes. Kept axes come first, then reduced axes, and each group is ordered
// from outermost to innermost. Every space has at least one kept axis, and at least one reduced
// axis if the segment has reductions. If there is no such axis, coalesce() adds an axis of extent
// 1.
struct Space {
  AxisNumbers extents;
  // Per axis: the set of the axes of the analysis (AxisId) that coalesce() has merged into it. Bit
  // i is set if axis i belongs to the set; axes from 63 on have no bit. Only names depend on this.
  AxisNumbers merged;
  size_t kept = 0;  // number of kept axes
  std::vector<SpaceTensor> tensors;
  IdVector<CoordinateId, SpaceCoordinate> coordinates;  // in the order of Analysis::coordinates
  // In the order of Analysis::indexed_inputs. dropUnusedTensors() (codegen/families/loops.h) may
  // change this order.
  std::vector<IndexedTensor> indexed;
  AxisNumbers widths;    // values of the pad widths in Analysis::widths
  bool clusters = true;  // RunSizes::clusters

  int64_t keptCount() const;     // number of elements along the kept axes
  int64_t reducedCount() const;  // number of elements along the reduced axes; 1 without reductions
  bool hasReduced() const { return kept < extents.size(); }
};

// Per axis of the analysis: the extent on this rank, and the index of this rank's first element
// in the unsharded tensor.
struct AxisExtents {
  AxisNumbers extents;
  AxisNumbers offsets;
  AxisNumbers widths;    // values of the pad widths, as in RunSizes
  bool clusters = true;  // RunSizes::clusters
};

// Reads the extents of the axes from the descriptors of the operands. RunSizes::generated gives the
// extents of the axes that no operand has. Throws UserError if two descriptors disagree about an
// axis, if a descriptor has a wrong rank, or if an axis is split that every rank needs unsplit.
AxisExtents axisExtents(const Fusion& segment, const Analysis& analysis, DescList inputs,
                        DescList outputs, const RunSizes& run);

// Returns the descriptor of a value as this rank would store it: dense and row-major.
TensorDesc denseDescOf(const Fusion& segment, const Analysis& analysis, const AxisExtents& extents,
                       ValueId id);

// Creates the space of a segment. The function maps the operands to the axes of `analysis`, drops
// axes of extent 1, and orders the kept and the reduced axes by strides. Then it merges
// neighbouring axes if the strides of every tensor allow this, and no body uses the index along one
// of them or mergeIndexedAxes() permits it.
Space coalesce(const Fusion& segment, const Analysis& analysis, const AxisExtents& extents,
               DescList inputs, DescList outputs);

// Returns whether a kernel over this space has nothing to store.
bool isEmpty(const Space& space);

// Returns whether the tensor is *full*: it has an element of its own for each element of the space.
// Every other tensor has stride 0 along some axis with several elements.
bool isFull(const SpaceTensor& t, const Space& space);

// Returns whether the strides and alignments guarantee aligned vectors of `width` elements along
// the axis. A vector is aligned if its address is a multiple of its size, or of 16 bytes if the
// vector is larger. Tensors with stride 0 along the axis do not count.
bool isAligned(const Space& space, size_t axis, int32_t width);

// Returns whether lanes should run along the innermost reduced axis. The alternative is the
// innermost kept axis. Each tensor votes for the axis along which it has the smaller stride, with
// its number of bytes as weight. If the votes are equal, lanes run along the reduced axis only if
// the kept axis is short. The votes do not count either if the reduced axis has several elements
// and all tensors have stride 0 along it.
bool lanesAlongReduced(const Space& space);

// Returns whether the kernel may have lookups: loads at indices that it loads first.
bool hasLookups(const Space& space);

// Returns whether the kernel selects among several indexed tensors by the index along the axis, as
// in a cat along the axis.
bool selectsAlong(const Space& space, size_t axis);

}  // namespace heddle::codegen
