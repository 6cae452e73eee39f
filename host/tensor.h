#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/device/device.h"
#include "host/device/device_tensor.h"
#include "host/program/program.h"
#include "ir/types/host_tensor.h"

namespace heddle::host {

// These functions return the descriptor of an input or output of the program on rank `rank`. It
// describes the block that `rank` holds. `position` is the index of the input or output. `ranks` is
// the number of ranks of the job. `sizes` gives values to the size symbols of the program; missing
// symbols take their defaults. The descriptor of a scalar is empty. The functions throw UserError
// if `position` does not exist, or if a symbol has no value. They also throw UserError if a guard
// of the program fails (SizeGuard in ir/sizes/size_guard.h), for example because two sizes differ.
TensorDesc inputDesc(const Program& program, size_t position, const SizeBindings& sizes,
                     int64_t rank, int64_t ranks);
TensorDesc outputDesc(const Program& program, size_t position, const SizeBindings& sizes,
                      int64_t rank, int64_t ranks);

// Returns inputDesc() of all inputs. This is faster than one call of inputDesc() per input.
std::vector<TensorDesc> inputDescs(const Program& program, const SizeBindings& sizes, int64_t rank,
                                   int64_t ranks);

// The descriptors of one rank. The descriptor of a scalar is empty.
struct RankDescs {
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
};
// Returns the descriptors of all inputs and outputs for a job of `ranks` ranks, one entry per rank.
// The parameters and errors are those of inputDesc().
std::vector<RankDescs> describe(const Program& program, const SizeBindings& sizes, int64_t ranks);

// Allocates device memory, copies `local` to it in the layout that `desc` describes, and returns
// when the copy has completed. The result owns the memory. `allocator` must outlive the result.
// Throws UserError if `local` and `desc` differ in dtype or sizes, or if the memory is exhausted.
Tensor toDevice(Device& device, Allocator& allocator, const HostTensor& local,
                const TensorDesc& desc);
// Copies a tensor to host memory and returns when the copy has completed. The copy uses the default
// stream of the device, so call Outputs::wait() before you copy an output. On a rank that holds no
// part of the tensor (`desc.held` is false), the result has sizes [0].
HostTensor toHost(Device& device, const Tensor& tensor);

}  // namespace heddle::host
