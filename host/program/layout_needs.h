#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Returns whether the instruction needs its tensors in the layout that their types state. Returns
// true for collectives, sends and receives, library calls other than matrix products, ReadBack, and
// the views Reshape, Unpad and Shard. All other instructions accept any strides.
bool needsLayout(const Op& op);

// Returns a descriptor for the operand of a view. If the operand has its sizes, allocated sizes and
// strides, the view has those of `out`. All other members are copied from `out`. Requires that the
// view is of the kind Same or Permute.
TensorDesc operandOfView(const Alias& view, const TensorDesc& out);

}  // namespace heddle::host
