#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <chrono>
#include <functional>
#include <string>

#include "comm/communicator.h"
#include "comm/cuda_call/cuda_call.h"

namespace heddle::comm::nccl {

// Throws UserError with the call, ncclGetErrorString and ncclGetLastError; `comm` may be null.
// ncclInProgress counts as success.
void check(const char* call, ncclResult_t result, ncclComm_t comm);

// Why the job cannot go on, as World::fault(): empty while it is well.
using FaultText = std::function<std::string()>;

// How long ranks wait for each other to make communicators: two minutes, and in a first post, as
// the control job monitor has its patience, ten; or what the environment variable
// HEDDLE_NCCL_TIMEOUT says in seconds.
std::chrono::seconds callDeadline();
std::chrono::seconds postDeadline();

// Polls until `call` on a non-blocking communicator has taken effect. Throws UserError when it
// failed, when the job has failed meanwhile, or after callDeadline().
void settle(const char* call, ncclComm_t comm, const FaultText& fault);

// Bool travels as bytes of 0 and 1.
ncclDataType_t dataTypeOf(DType dtype);

// Bool has no sum or product in NCCL: "any" is the maximum, "all" the minimum. The average of one
// rank leaves out elements of large tensors before NCCL 2.29.7 (NVIDIA/nccl#1950); its sum does
// not.
ncclRedOp_t operatorOf(ReduceOp op, DType dtype, int ranks);

}  // namespace heddle::comm::nccl
