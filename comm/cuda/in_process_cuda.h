#pragma once

#include <memory>
#include <vector>

#include "comm/modules.h"

namespace heddle::comm {

// `size` ranks on the one GPU `device`, each with a thread and streams of its own. Communicators
// are stream-ordered and work on device memory. `reduce` must allow its result to be one of its
// sources.
//
// post() waits on the host until every other rank of each operation has posted it too, and once
// more until all have enqueued their share; another rank's abort or departure ends the wait with
// UserError. It does not wait for the device.
//
// UserError when the device cannot be used.
std::vector<std::unique_ptr<World>> makeInProcessCudaWorlds(int size, int device,
                                                            DeviceReduce reduce);

}  // namespace heddle::comm

// For those who load the module and know nothing of its C++ symbols.
extern "C" heddle::comm::MakeInProcessCudaWorlds heddleInProcessCudaWorlds();
