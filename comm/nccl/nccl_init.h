#pragma once

#include <nccl.h>

#include "comm/communicator.h"
#include "comm/nccl/nccl_call.h"

namespace heddle::comm::nccl {

// Communicators on the current device. UserError when the ranks do not come together before
// callDeadline(), or the job fails meanwhile; nothing is left behind then but,
// after a failed split, the few bytes into which NCCL may still write.

// A non-blocking one, to be split: of the ranks of `bootstrap`, a communicator on host memory,
// which is used only here. A barrier of them follows.
ncclComm_t initialise(Communicator& bootstrap, const FaultText& fault);

// A blocking one, for collectives. Collective over `parent`: ranks of the same colour, in the order
// of their keys. A negative colour takes part in the call and gets nullptr. `ctas` as in
// World::split.
ncclComm_t split(ncclComm_t parent, int color, int key, int ctas, const FaultText& fault);

// Destroys a blocking communicator whose work is over. NCCL may wait for its peers there: when the
// job fails meanwhile, or they do not come, it is left to the end of the process.
void destroy(ncclComm_t comm, int device, const FaultText& fault);

// Destroys what initialise() has made, or gives it up when the job has failed.
void close(ncclComm_t comm, const FaultText& fault) noexcept;

}  // namespace heddle::comm::nccl
