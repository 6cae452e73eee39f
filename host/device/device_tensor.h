#pragma once

#include <memory>
#include <variant>

#include "ir/types/tensor.h"

namespace heddle::host {

// A rank's block of a tensor, in device memory unless `in_host_memory` is true. On a rank outside
// of the tensor's mesh, `desc.held` is false and there is no data.
struct Tensor {
  void* data = nullptr;  // the address must be a multiple of the size of an element
  TensorDesc desc;
  // Keeps the memory alive. Empty: the caller owns the memory. If a run stores an output in a
  // tensor of the caller, the output has a new owner. The new owner keeps the owner of the caller's
  // tensor alive. It also lets heddle find the run that has written the memory.
  std::shared_ptr<void> owner;
  // true: `data` is in host memory. This is allowed only for inputs without axes. run() reads the
  // single element before it returns, also on a CPU device.
  bool in_host_memory = false;
};

// A tensor or a scalar that is passed to a run or returned by one.
//
// The scalar for an input must fit the dtype of the input:
//  - An input of bool takes a bool.
//  - An input of an integer type takes an int64_t in the range of the type.
//  - An input of a float type takes a double, or an int64_t that the type represents exactly. A
//    double is rounded to the type; a finite double must not become infinite.
// Otherwise run() throws UserError with ErrorCode::Type, and the message names the input. The
// default value of a scalar input follows the same rule.
using Argument = std::variant<Tensor, Scalar>;

}  // namespace heddle::host
