#pragma once

#include <memory>

#include "codegen/kernel.h"
#include "comm/modules.h"

namespace heddle::host {

// Creates a function that computes dst = srcs[0] op srcs[1] op ... on GPU `device`. Its results
// equal those of comm::reduceOnHost(). The function takes up to kMostReduced sources. The first
// call compiles the kernel. The function is thread-safe.
inline constexpr int kMostReduced = 64;
comm::DeviceReduce makeDeviceReduce(int device,
                                    std::shared_ptr<const codegen::KernelCompiler> compiler);

}  // namespace heddle::host
