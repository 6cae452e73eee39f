#pragma once

#include <cuda_runtime_api.h>

#include "ir/base/error.h"

// This code is header-only, because the modules that use it are separate shared libraries.
namespace heddle::comm {

// Throws UserError if `status` is an error. The message has the name of the call, and the text and
// the name that CUDA has for the error. If there is an error, the function clears CUDA's last
// error. Otherwise a later call of cudaGetLastError would report the same error again.
inline void checkCuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  userError("{} failed: {} ({})", call, cudaGetErrorString(status), cudaGetErrorName(status));
}

}  // namespace heddle::comm

// Calls a CUDA function and checks its result, for example HEDDLE_CUDA(cudaEventRecord, event,
// stream).
#define HEDDLE_CUDA(api, ...) ::heddle::comm::checkCuda(api(__VA_ARGS__), #api)
