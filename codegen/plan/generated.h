#pragma once

#include <vector>

#include "codegen/plan/analysis.h"
#include "codegen/plan/desc_list.h"
#include "codegen/plan/space.h"
#include "ir/types/tensor.h"

namespace heddle::codegen {

// A kernel may combine elements along an axis that no operand has. For example, the kernel of
//
//   %e = expand(%x, sizes=[n, 3])  // %x has the axes [3]
//   %y = max(%e, axes=[0])
//
// reads %x and stores %y, and neither has the axis of n elements. Such an axis is *generated*. No
// operand gives its extent, so the caller describes a value that has the axis.

// Returns the values whose descriptors planKernel() needs for the generated axes, in ascending
// order. The list contains a value if it has a generated axis that no earlier value of the list
// has.
std::vector<ValueId> generatedValues(const Fusion& segment);
// Computes the same list for Analysis::generated. Requires that Analysis::axes and
// Analysis::reduced, or Analysis::parts, are set.
std::vector<ValueId> findGenerated(const Fusion& segment, const Analysis& analysis);

// Returns the RunSizes for operands with these descriptors. Requires that generatedValues(segment)
// have no sharding. The function takes the values of symbols from the descriptors. Each symbol in
// the sizes of a generated value or in a pad width must therefore be the size of an operand's axis.
RunSizes unshardedSizes(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                        const std::vector<TensorDesc>& outputs);

// Selects the sizes of a run that a part of a segment needs. A *part* is a smaller segment: an
// independent part (Analysis::parts), or one of the segments in Sweeps (codegen/families/sweeps.h).
// `analysis` is the analysis of the segment, and `of_part` is the analysis of the part. A value has
// the same name in both fusions.
class PartSizes {
 public:
  PartSizes(const Fusion& segment, const Analysis& analysis, const Fusion& part,
            const Analysis& of_part);
  // Selects from the sizes of the segment. Requires that Analysis::generated of the segment lists
  // all generated values of the part.
  RunSizes of(const RunSizes& run) const;
  // Computes the sizes from the extents of the segment.
  RunSizes of(const Fusion& segment, const Analysis& analysis, const AxisExtents& extents) const;

 private:
  std::vector<ValueId> values_;    // Analysis::generated of the part, as values of the segment
  std::vector<size_t> generated_;  // their indices in Analysis::generated of the segment
  std::vector<size_t> widths_;  // the part's widths, as indices in Analysis::widths of the segment
};

// Returns PartSizes::of(segment, analysis, extents).
RunSizes partSizes(const Fusion& segment, const Analysis& analysis, const AxisExtents& extents,
                   const Fusion& part, const Analysis& of_part);

}  // namespace heddle::codegen
