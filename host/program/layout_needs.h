#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Returns whether the instruction needs its tensors in the layout that their types state. This is
// so for collectives, library calls other than matrix products, copies to the host, and views that
// regroup axes. Kernels, other copies, matrix products and other views accept any strides.
bool needsLayout(const Op& op);

// Returns the descriptor that the operand must have so that the view has the descriptor `out`.
// Requires that the view is Same or Permute.
TensorDesc operandOfView(const Alias& view, const TensorDesc& out);

}  // namespace heddle::host
