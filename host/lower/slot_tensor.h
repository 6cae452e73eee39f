#pragma once

#include "ir/types/tensor.h"

namespace heddle::host {

// Returns the tensor of a slot. A slot has one memory order, Layout::required. It is the order that
// the user required, that an operation needs, or that a pass chose.
inline TensorView tensorOfSlot(TensorView tensor) {
  Layout& layout = tensor.layout;
  if (!layout.required) layout.required = layout.needed ? layout.needed : layout.hint;
  layout.needed.reset();
  layout.hint.reset();
  return tensor;
}

}  // namespace heddle::host
