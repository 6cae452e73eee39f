#pragma once

#include <nccl.h>

#include "comm/communicator.h"
#include "comm/nccl/nccl_call.h"

namespace heddle::comm::nccl {

// Create and destroy NCCL communicators on the current device. They throw UserError if the ranks do
// not come together within callDeadline(), or if the job fails meanwhile. Nothing leaks then,
// except that NCCL may still write a few bytes after a failed split.

// Creates a non-blocking communicator of the ranks of `bootstrap`, for split(). `bootstrap` works
// on host memory and is used only during the call. Ends with a barrier.
ncclComm_t initialise(Communicator& bootstrap, const FaultText& fault);

// Creates a blocking communicator for collectives. Collective over `parent`: ranks of one colour
// form a team, in the order of their keys. A rank with a negative colour takes part and gets
// nullptr. `ctas` as in Carrier.
ncclComm_t split(ncclComm_t parent, int color, int key, int ctas, const FaultText& fault);

// Destroys a blocking communicator whose work has completed. NCCL may wait for the other ranks. If
// the job fails meanwhile, or they do not arrive, the communicator stays until the process ends.
void destroy(ncclComm_t comm, int device, const FaultText& fault);

// Destroys a communicator of initialise(), or aborts it if the job has failed.
void close(ncclComm_t comm, const FaultText& fault) noexcept;

}  // namespace heddle::comm::nccl
