#pragma once

#include <nccl.h>

#include "comm/communicator.h"
#include "comm/nccl/nccl_call.h"

namespace heddle::comm::nccl {

// Create and destroy NCCL communicators on the current device. These functions throw UserError if
// not all ranks call them within callDeadline(), or if the job fails meanwhile. Then nothing leaks,
// except a few bytes to which NCCL may still write after a failed split().

// Creates a non-blocking communicator of the ranks of `bootstrap`, which only serves as the parent
// of split(). `bootstrap` works on host memory and is used only during the call. Ends with a
// barrier.
ncclComm_t initialise(Communicator& bootstrap, const FaultText& fault);

// Creates a blocking communicator for collectives. Collective over `parent`: ranks of one colour
// form a team, in the order of their keys. A rank with a negative colour must call split() too and
// gets nullptr. `ctas` has the meaning of Carrier::ctas.
ncclComm_t split(ncclComm_t parent, int color, int key, int ctas, const FaultText& fault);

// Destroys a blocking communicator whose work has completed. NCCL may wait for the other ranks. If
// the job fails meanwhile, or the other ranks do not arrive, the communicator is not freed before
// the process ends.
void destroy(ncclComm_t comm, int device, const FaultText& fault);

// Destroys a communicator that initialise() created, or aborts it if the job has failed.
void close(ncclComm_t comm, const FaultText& fault) noexcept;

}  // namespace heddle::comm::nccl
