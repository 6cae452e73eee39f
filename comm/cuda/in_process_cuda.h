#pragma once

#include <memory>
#include <vector>

#include "comm/modules.h"

namespace heddle::comm {

// Creates `size` ranks on the GPU `device`, each with its own thread and streams. Communicators are
// stream-ordered and work on device memory. `reduce` must allow its result to be one of its
// sources.
//
// post() waits on the host until every other rank of each operation has posted it too, and again
// until all have enqueued their parts. It does not wait for the device. If another rank aborts or
// leaves, it throws UserError.
//
// Throws UserError if the device cannot be used.
std::vector<std::unique_ptr<World>> makeInProcessCudaWorlds(int size, int device,
                                                            DeviceReduce reduce);

}  // namespace heddle::comm

// Found by dlsym.
extern "C" heddle::comm::MakeInProcessCudaWorlds heddleInProcessCudaWorlds();
