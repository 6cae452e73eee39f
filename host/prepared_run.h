#pragma once

#include <cstddef>
#include <memory>

#include "host/executable.h"

namespace heddle::host {

// Starts runs with the same shapes again and again. A PreparedRun stores the arguments of the next
// run. Between two runs, the caller replaces addresses and scalars. A run compares no shapes, so
// its host time hardly depends on the number of inputs.
//
// Use:      Executable::prepareRun() or FusionExecutor::prepareRun() creates the object from
//           complete arguments, and checks them like run(). The object keeps the addresses and the
//           scalars of these arguments until the caller replaces them.
// Promises: the caller promises that each new tensor has the dtype, sizes, strides and memory (host
//           or device) of the tensor that it replaces. heddle cannot check this.
// Options:  the object keeps the RunOptions. Their allocator, profile and stream must outlive it.
// Memory:   the object keeps no owner of the tensors (Tensor::owner). The rules of
//           Executable::run() apply to their memory. An output that is a view of an input has no
//           owner. An output that is stored in an input has an owner, but this owner does not keep
//           the memory alive.
// Threads:  one thread at a time may use the object. Several threads may use several objects.
// Lifetime: the Executable or FusionExecutor that created the object must outlive it.
class PreparedRun {
 public:
  ~PreparedRun();
  PreparedRun(PreparedRun&&) noexcept;

  // Sets the address of input `i`, which is a tensor. Throws UserError in these cases:
  // - The arguments of prepareRun() had no such input, or it is a scalar.
  // - `data` is nullptr although the tensor has elements.
  // - The tensor is in device memory, and `data` is less aligned than the tensor with which the
  //   object was created. An alignment of more than 16 bytes counts as 16 bytes.
  void setInput(size_t i, void* data);
  // Sets the value of input `i`, which is a scalar. Throws UserError if the arguments of
  // prepareRun() had no such input, or if it is a tensor. Also throws UserError if the input
  // decides a size or an offset, and the value is not one for which the object was created, or does
  // not fit the type of the input. The object then keeps the old value. For all other inputs, run()
  // throws if the value does not fit the type (Argument in host/device/device_tensor.h).
  void setScalar(size_t i, Scalar value);
  // Sets the address that receives output `i`. Throws UserError in these cases:
  // - The output was not preallocated (RunOptions::preallocated) when the object was created.
  // - `data` is nullptr, or less aligned than the tensor with which the object was created.
  void setOutput(size_t i, void* data);

  // Starts a run (see Executable::run()). Also throws UserError if an input in host memory decides
  // a size or an offset, and its value is not one for which the object was created.
  Outputs run();

 private:
  friend class Executable;
  friend class FusionExecutor;
  struct Impl;
  explicit PreparedRun(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::host
