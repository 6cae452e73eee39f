#pragma once

#include <nccl.h>

#include "comm/communicator.h"
#include "comm/nccl/nccl_call.h"

namespace heddle::comm::nccl {

// These functions create and destroy NCCL communicators on the current device. initialise() and
// split() throw UserError in these cases:
// - The job fails, or NCCL reports an error.
// - A call of NCCL does not complete within callDeadline() (comm/nccl/nccl_call.h), for example
//   because some rank does not make the same call.
// A split() that fails leaks a few bytes, because NCCL may still write to them.

// Creates a non-blocking communicator of the ranks of `bootstrap`, for use as the parent of
// split(). `bootstrap` must work on host memory, and is used only during the call. The call ends
// with a barrier.
ncclComm_t initialise(Communicator& bootstrap, const FaultText& fault);

// Creates a blocking communicator for collectives. All ranks of `parent` must call split(). Ranks
// with the same colour form a team, in the order of their keys. A rank with a negative colour gets
// nullptr. `ctas` is Carrier::ctas (comm/communicator.h).
ncclComm_t split(ncclComm_t parent, int color, int key, int ctas, const FaultText& fault);

// Destroys a blocking communicator whose work has completed. NCCL may wait for the other ranks. If
// this wait takes longer than callDeadline(), or the job fails meanwhile, the call returns and the
// communicator may leak.
void destroy(ncclComm_t comm, int device, const FaultText& fault);

// Destroys a communicator that initialise() created. Aborts it instead if the job has failed, NCCL
// reports an error, or the end takes longer than callDeadline().
void close(ncclComm_t comm, const FaultText& fault) noexcept;

}  // namespace heddle::comm::nccl
