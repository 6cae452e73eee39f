#pragma once

#include "host/unroll/scope.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// Returns the product of the sizes.
int64_t elements(const std::vector<int64_t>& sizes);

// Returns the view of `in` that an Alias gives to the slot `out`. UserError names the slots if the
// view does not exist.
View makeView(const Alias& alias, const Slot& out, const Slot& in_slot, const View& in,
              const Scope& scope);

// Returns the strides with which `to` views the memory of `from`. Both descriptors have the same
// elements in row-major order, but group them in different axes. Returns nullopt if there are no
// such strides. Only the outermost axis of each group of regrouped axes may have padding, and only
// at its end.
std::optional<std::vector<int64_t>> regroup(const TensorDesc& from, const TensorDesc& to);

}  // namespace heddle::host
