#pragma once

#include <memory>
#include <variant>

#include "ir/types/tensor.h"

namespace heddle::host {

// A tensor in device memory; without data where the rank is outside of the tensor's mesh
// (`desc.held`). `owner` keeps the memory alive: empty when the caller owns it.
struct Tensor {
  void* data = nullptr;
  TensorDesc desc;
  std::shared_ptr<void> owner;
  // As an input: `data` is in host memory. Such a tensor has no axes and is passed by value: run()
  // has read its element when it returns. On a device that is the host, too.
  bool in_host_memory = false;
};

// A tensor or a scalar, as given to a run or returned from one.
using Argument = std::variant<Tensor, Scalar>;

}  // namespace heddle::host
