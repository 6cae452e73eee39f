#pragma once

#include <vector>

#include "codegen/plan/analysis.h"
#include "ir/types/tensor.h"

namespace heddle::codegen {

// A kernel may combine elements along an axis that no operand has. For example, the kernel of
//
//   %e = expand(%x, sizes=[n, 3])  // %x has the axes [3]
//   %y = max(%e, axes=[0])
//
// reads %x and stores %y, and neither has the axis of n elements. Such an axis is *generated*. Its
// extent follows from no operand, so the caller describes a value that has the axis.

// Returns the values whose descriptors planKernel() needs for the generated axes, in ascending
// order. The list contains a value if it has a generated axis that no earlier value of the list
// has.
std::vector<ValueId> generatedValues(const Fusion& segment);
// Computes Analysis::generated, which is the same list. All other members must be set.
std::vector<ValueId> findGenerated(const Fusion& segment, const Analysis& analysis);

// Returns the descriptors of generatedValues(segment), for a segment in which these values have no
// sharding. Requires that every symbol in their sizes is also the size of an axis of an operand,
// whose descriptor gives the value of the symbol.
std::vector<TensorDesc> unshardedGenerated(const Fusion& segment,
                                           const std::vector<TensorDesc>& inputs,
                                           const std::vector<TensorDesc>& outputs);

}  // namespace heddle::codegen
