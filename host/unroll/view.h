#pragma once

#include "host/unroll/scope.h"
#include "host/unroll/unroll.h"

namespace heddle::host {

// The product of the sizes.
int64_t elements(const std::vector<int64_t>& sizes);

// The view that an Alias makes of `in`, for the slot `out`. UserError naming the slots when there
// is no such view.
View makeView(const Alias& alias, const Slot& out, const Slot& in_slot, const View& in,
              const Scope& scope);

// Strides of `to` over the memory of `from`, both row-major regroupings of the same elements;
// nullopt when no strides say it. Padding may only be at the end of the outermost axis of a
// regrouped run.
std::optional<std::vector<int64_t>> regroup(const TensorDesc& from, const TensorDesc& to);

}  // namespace heddle::host
