#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/device/device.h"
#include "host/device/device_tensor.h"
#include "host/program/program.h"
#include "ir/types/host_tensor.h"

namespace heddle::host {

// Return the local descriptor of input or output `position` of the program: what a caller must pass
// on `rank` of a job of `ranks`, or what a run returns there. `sizes` gives the symbols of the
// program; missing symbols take their defaults. Scalars have an empty descriptor.
// UserError: no such position, a symbol without a value, a failed guard of the program.
TensorDesc inputDesc(const Program& program, size_t position, const SizeBindings& sizes,
                     int64_t rank, int64_t ranks);
TensorDesc outputDesc(const Program& program, size_t position, const SizeBindings& sizes,
                      int64_t rank, int64_t ranks);

// Returns inputDesc() of all inputs. For many inputs, this is faster.
std::vector<TensorDesc> inputDescs(const Program& program, const SizeBindings& sizes, int64_t rank,
                                   int64_t ranks);

// Copies a tensor to memory of the device that this function allocates; the result owns it.
// `allocator` must outlive the result. Returns when the copy has completed.
// UserError: `local` and `desc` differ in dtype or sizes, or the memory is exhausted.
Tensor toDevice(Device& device, Allocator& allocator, const HostTensor& local,
                const TensorDesc& desc);
// Copies a tensor to host memory and returns when the copy has completed. The copy uses the default
// stream of the device, so call Outputs::wait() before you copy an output. A rank that holds
// nothing of the tensor (`desc.held` is false) gets a tensor of sizes [0].
HostTensor toHost(Device& device, const Tensor& tensor);

}  // namespace heddle::host
