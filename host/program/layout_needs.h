#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Returns whether the instruction needs its tensors in the layout that their types state. Returns
// true for collectives, sends and receives, library calls other than matrix products, ReadBack, and
// the views Reshape, Unpad and Shard. All other instructions accept any strides.
bool needsLayout(const Op& op);

// Returns the descriptor that the operand must have so that the view has the descriptor `out`.
// Requires that the view is Same or Permute.
TensorDesc operandOfView(const Alias& view, const TensorDesc& out);

}  // namespace heddle::host
