#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <chrono>
#include <functional>
#include <string>

#include "comm/communicator.h"
#include "comm/cuda_call/cuda_call.h"

namespace heddle::comm::nccl {

// Throws UserError if `result` is neither ncclSuccess nor ncclInProgress. The message has the name
// of the call and the texts of ncclGetErrorString and ncclGetLastError. `comm` may be null.
void check(const char* call, ncclResult_t result, ncclComm_t comm);

// A function that returns why the job has failed, as World::fault() does. The text is empty if the
// job has not failed.
using FaultText = std::function<std::string()>;

// These functions return time limits for ranks that wait for each other. callDeadline() limits the
// creation and the end of a communicator. Its default is 120 s. postDeadline() limits a post, which
// may wait until NCCL has connected the ranks. Its default is 600 s, as for
// JobMonitorOptions::patience. The environment variable HEDDLE_NCCL_TIMEOUT sets both, in seconds.
std::chrono::seconds callDeadline();
std::chrono::seconds postDeadline();

// Polls until the latest call on `comm` has completed. `comm` is a non-blocking communicator, and
// `call` is the name of the call. Throws UserError if the call fails, if the job fails meanwhile,
// or after callDeadline().
void settle(const char* call, ncclComm_t comm, const FaultText& fault);

// Returns the NCCL type of an element. Bools and elements of f8 types are transferred as bytes.
ncclDataType_t dataTypeOf(DType dtype);

// Returns the NCCL operator. NCCL has no bools, so a sum of bools is a maximum of bytes, and a
// product is a minimum. If `ranks` is 1, an average is a sum, because NCCL before version 2.29.7
// skips elements of large tensors in an average on one rank (NVIDIA/nccl#1950).
ncclRedOp_t operatorOf(ReduceOp op, DType dtype, int ranks);

}  // namespace heddle::comm::nccl
