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

// Returns the values whose descriptors planKernel() needs for the generated axes: in ascending
// order, each value that has a generated axis that no earlier one has.
std::vector<ValueId> generatedValues(const Fusion& segment);
// Computes Analysis::generated, which is the same list. All other members must be set.
std::vector<ValueId> findGenerated(const Fusion& segment, const Analysis& analysis);

// Returns the descriptors of generatedValues(segment), for a segment in which these values have no
// sharding. If a symbol is the size of an operand's axis, the operand gives its value. No other
// symbols may occur.
std::vector<TensorDesc> unshardedGenerated(const Fusion& segment,
                                           const std::vector<TensorDesc>& inputs,
                                           const std::vector<TensorDesc>& outputs);

}  // namespace heddle::codegen
