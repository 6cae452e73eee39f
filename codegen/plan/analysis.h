#pragma once

#include <vector>

#include "ir/analysis/independent_parts.h"
#include "ir/analysis/indexed_axes.h"
#include "ir/graph/fusion.h"

namespace heddle::codegen {

// Where a kernel stores an output. Loop: in the loop over all axes of the iteration space. Finish:
// after the reductions, in a loop over only the axes that are not reduced (kept axes).
enum class StoredIn : uint8_t { Loop, Finish };

// Two reductions that a kernel computes together in one *sweep* (codegen/plan/joint.h). A sweep is
// one pass over the elements that are reduced.
enum class JointKind : uint8_t { None, Exponentials, Moments };
struct JointReductions {
  JointKind kind = JointKind::None;
  ExprId first = kNoExpr;
  ExprId second = kNoExpr;
  ValueId center = kNoValue;  // Moments: the value c in sum((x - c)^2)
};

struct AnalyzedPart;

using AxisId = Id<struct AxisTag>;  // number of an axis of the iteration space (Analysis)

// An op that reads an input of the segment at computed indices.
struct IndexedOp {
  size_t input = 0;  // index into Analysis::indexed_inputs
  // Per logical axis of the input: the axis of the space whose index the op uses without a change.
  // Invalid if there is none.
  std::vector<AxisId> same;
};

// The structure of a segment that becomes one kernel. The kernel has one iteration space
// (exception: `parts`). Each axis of a value maps to one axis of this space. Exceptions: the value
// is broadcast or has one element along the axis, or it is read only at computed indices
// (`indexed_only`). The axes of the space are numbered from 0: first the axes of the first value,
// then the new axes of the next value, and so on.
struct Analysis {
  // axes[value][i]: the axis of the space to which logical axis i of the value maps; invalid:
  // logical axis i maps to no axis.
  IdVector<ValueId, std::vector<AxisId>> axes;
  // Per axis of the space: true if reductions of the segment combine elements along this axis.
  IdVector<AxisId, bool> reduced;
  IdVector<ValueId, bool> after;    // per value: true if it depends on a reduction
  std::vector<ExprId> reductions;   // all reductions, in the order of the segment
  std::vector<StoredIn> stored_in;  // per output of the segment
  // Per value: true if the value is an input of the segment, and all ops that read it do so at
  // computed indices. The axes of such an input do not map to axes of the space.
  IdVector<ValueId, bool> indexed_only;
  // Per expression: indexedAxesOf() (ir/analysis/indexed_axes.h) for an op that reads an operand at
  // computed indices (OpKind::Index), otherwise empty.
  IdVector<ExprId, std::vector<IndexedAxis>> indexed_axes;
  std::vector<ValueId> indexed_inputs;  // indexedInputs() of the segment
  // The values whose descriptors give the extents of the *generated* axes. These are the axes of
  // the space that no operand of the kernel has (codegen/plan/generated.h).
  std::vector<ValueId> generated;
  // The pad widths whose values are known only at run time, without duplicates. Kernels get the
  // values as arguments.
  std::vector<Size> widths;
  // The axes of the space along which some op uses the index of the current element, in ascending
  // order.
  std::vector<AxisId> coordinates;
  // The axes in `coordinates` along which an op uses the index for anything else than to read the
  // element with this index. Examples: an iota, or a pad along the axis. Ascending.
  std::vector<AxisId> shifted;
  std::vector<IndexedOp> indexed_ops;
  // Per value: true for a tensor of a float type of 16 bits or less. Also true for an f32 tensor
  // that is no output, if two conditions hold for every op that reads it: `rounded` is true for the
  // result of the op, and a small relative error of the tensor causes only a small relative error
  // of this result. Kernels may then compute the value with OpDef::rounded_text (ir/ops/op.h),
  // which is faster and less exact.
  IdVector<ValueId, bool> rounded;
  // The pairs of reductions that the kernel computes in one sweep. analyze() leaves the list empty.
  // For a kernel that can use such pairs, the planner sets it to the result of jointReductions().
  std::vector<JointReductions> joint;
  // If the segment consists of several independent parts (ir/analysis/independent_parts.h): the
  // parts. All other members except `generated` and `widths` are then empty.
  std::vector<AnalyzedPart> parts;

  // Returns the pair whose second reduction is `id`, or nullptr.
  const JointReductions* pairEndingWith(ExprId id) const;
};

struct AnalyzedPart {
  SegmentPart part;
  Analysis analysis;  // analysis of part.segment
};

// Analyzes `segment`. Throws UserError with the text of whyNotOneKernel() if `segment` cannot be
// one kernel.
Analysis analyze(const Fusion& segment);

// Analyzes a segment without dividing it into independent parts, and without checking whether it
// can be one kernel. Use this for a segment with one iteration space. Values without axes do not
// connect parts, so analyze() would divide some of these segments, for example one with several
// sums of all elements.
Analysis analyzeAsOnePart(const Fusion& segment);

// Returns why the segment cannot be one generated kernel, or an empty string if it can.
// Segmentation (ir/segment) applies the same rules (ir/analysis/kernel_rules.h) when it divides a
// fusion into segments.
std::string whyNotOneKernel(const Fusion& segment);

}  // namespace heddle::codegen
