#pragma once

#include <memory>

#include "codegen/kernel.h"
#include "comm/modules.h"

namespace heddle::host {

inline constexpr int kMostReduced = 64;  // largest number of source buffers of a reduction

// Creates a function that enqueues the reduction dst = srcs[0] op srcs[1] op ... on GPU `device`
// (comm/modules.h). The results equal those of comm::reduceOnHost(). The function takes 1 to
// kMostReduced source buffers. Its first call with elements compiles the kernel. The function is
// thread-safe. It throws UserError for any other number of sources, for f8 types, and for an
// average of a type that is not a float type.
comm::DeviceReduce makeDeviceReduce(int device,
                                    std::shared_ptr<const codegen::KernelCompiler> compiler);

}  // namespace heddle::host
