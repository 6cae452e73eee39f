#pragma once

#include <memory>

#include "codegen/kernel.h"
#include "comm/modules.h"

namespace heddle::host {

// dst = srcs[0] op srcs[1] op ... on GPU `device`, with the semantics of comm::reduceOnHost, for up
// to kMostReduced sources; the kernel is compiled at the first use. Thread-safe.
inline constexpr int kMostReduced = 64;
comm::DeviceReduce makeDeviceReduce(int device,
                                    std::shared_ptr<const codegen::KernelCompiler> compiler);

}  // namespace heddle::host
