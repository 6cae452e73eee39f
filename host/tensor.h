#pragma once

#include <cstddef>
#include <cstdint>

#include "host/device/device.h"
#include "host/device/device_tensor.h"
#include "host/program/program.h"
#include "ir/types/host_tensor.h"

namespace heddle::host {

// The local descriptor of input or output `position` of the program on `rank`, for these sizes:
// what a caller must pass or will get.
TensorDesc inputDesc(const Program& program, size_t position, const SizeBindings& sizes,
                     int64_t rank, int64_t ranks);
TensorDesc outputDesc(const Program& program, size_t position, const SizeBindings& sizes,
                      int64_t rank, int64_t ranks);

// Host <-> device, for callers without memory of their own. Both wait.
Tensor toDevice(Device& device, Allocator& allocator, const HostTensor& local,
                const TensorDesc& desc);
HostTensor toHost(Device& device, const Tensor& tensor);

}  // namespace heddle::host
