#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string>

#include "comm/communicator.h"

namespace heddle::comm::nccl {

// Throws UserError with the call, ncclGetErrorString and ncclGetLastError; `comm` may be null.
// ncclInProgress counts as success.
void check(const char* call, ncclResult_t result, ncclComm_t comm);
void checkCuda(const char* call, cudaError_t result);

// Polls until the last call on a non-blocking communicator has taken effect. Throws UserError when
// it failed, or when `what` takes longer than the deadline of two minutes.
void settle(const std::string& what, ncclComm_t comm);

// Bool travels as bytes of 0 and 1.
ncclDataType_t dataTypeOf(DType dtype);

// Bool has no sum or product in NCCL: "any" is the maximum, "all" the minimum.
ncclRedOp_t operatorOf(ReduceOp op, DType dtype);

}  // namespace heddle::comm::nccl
