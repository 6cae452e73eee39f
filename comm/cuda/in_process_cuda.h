#pragma once

#include <memory>
#include <vector>

#include "comm/modules.h"

namespace heddle::comm {

// Creates the Worlds of `size` ranks that share the GPU `device`. Use each World in a thread of its
// own, with its own streams. Communicators are stream-ordered and work on device memory. `reduce`
// must also work if `dst` is one of `srcs` (DeviceReduce).
//
// For each operation, post() waits on the host twice. The first wait ends when all participating
// ranks have posted the operation. The second wait ends when they have enqueued their parts of the
// data movement. post() does not wait for the device. If another rank aborts or leaves, post()
// throws UserError.
//
// Throws UserError if CUDA has no device with the number `device`, or if `size` is less than 1.
std::vector<std::unique_ptr<World>> makeInProcessCudaWorlds(int size, int device,
                                                            DeviceReduce reduce);

}  // namespace heddle::comm

// Returns makeInProcessCudaWorlds. The tests of this transport find this entry point of
// libheddle_cuda by dlsym; heddle itself calls CudaModule::makeInProcessWorlds
// (host/device/cuda_module.h).
extern "C" heddle::comm::MakeInProcessCudaWorlds heddleInProcessCudaWorlds();
