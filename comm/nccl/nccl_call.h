#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <chrono>
#include <functional>
#include <string>

#include "comm/communicator.h"
#include "comm/cuda_call/cuda_call.h"

namespace heddle::comm::nccl {

// Throws UserError with the name of the call, ncclGetErrorString and ncclGetLastError. `comm` may
// be null. ncclInProgress counts as success.
void check(const char* call, ncclResult_t result, ncclComm_t comm);

// Returns why the job has failed, as World::fault(); empty: it has not failed.
using FaultText = std::function<std::string()>;

// Return how long ranks wait for each other: to create communicators (default 120 s), and in a
// first post (default 600 s, as the patience of the job monitor). The environment variable
// HEDDLE_NCCL_TIMEOUT sets both, in seconds.
std::chrono::seconds callDeadline();
std::chrono::seconds postDeadline();

// Polls until `call` on a non-blocking communicator has completed. Throws UserError if it fails, if
// the job fails meanwhile, or after callDeadline().
void settle(const char* call, ncclComm_t comm, const FaultText& fault);

// Returns the NCCL type of an element. Bool is transferred as bytes of 0 and 1.
ncclDataType_t dataTypeOf(DType dtype);

// Returns the NCCL operator. NCCL has no sum or product of bool: "any" is the maximum, "all" the
// minimum. NCCL's average on one rank skips elements of large tensors before version 2.29.7
// (NVIDIA/nccl#1950); the sum does not.
ncclRedOp_t operatorOf(ReduceOp op, DType dtype, int ranks);

}  // namespace heddle::comm::nccl
