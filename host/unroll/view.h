#pragma once

#include "host/unroll/scope.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// Returns the product of the sizes, which is the number of elements of a tensor.
int64_t elements(const std::vector<int64_t>& sizes);

// Returns the first axis along which several allocated elements share one address, that is, whose
// stride is 0. Returns nullopt if there is no such axis, or if the tensor is empty.
std::optional<size_t> repeatedAxis(const TensorDesc& desc);

// Returns the view that the Alias instruction assigns to the slot `out`. `in` is the view of its
// operand, the slot `in_slot`. Throws UserError that names the slots if the operand has no such
// view.
View makeView(const Alias& alias, const Slot& out, const Slot& in_slot, const View& in,
              const Scope& scope);

// Returns the strides of `to` for a reshape of `from` without a copy. Both descriptors have the
// same elements in row-major order, but different axes. A group is a minimal list of adjacent axes
// of `from` that become adjacent axes of `to`. For example, a reshape from [6, 5] to [2, 3, 5] has
// two groups: 6 becomes 2, 3, and 5 stays. Returns nullopt if a copy would be needed, or if an axis
// other than the outermost one of a group has padding.
std::optional<std::vector<int64_t>> regroup(const TensorDesc& from, const TensorDesc& to);

}  // namespace heddle::host
