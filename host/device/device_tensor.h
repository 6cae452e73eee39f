#pragma once

#include <memory>
#include <variant>

#include "ir/types/tensor.h"

namespace heddle::host {

// A rank's block of a tensor, in device memory. On a rank outside of the tensor's mesh, `desc.held`
// is false and there is no data.
struct Tensor {
  void* data = nullptr;
  TensorDesc desc;
  // Keeps the memory alive. Empty: the caller owns the memory. An output also has an owner if it is
  // stored in a tensor of the caller: the owner then says which run has written the memory.
  std::shared_ptr<void> owner;
  // true: `data` is in host memory. This is allowed only for inputs without axes. run() reads the
  // single element before it returns, also on a CPU device.
  bool in_host_memory = false;
};

// A tensor or a scalar that is passed to a run or returned by one.
using Argument = std::variant<Tensor, Scalar>;

}  // namespace heddle::host
