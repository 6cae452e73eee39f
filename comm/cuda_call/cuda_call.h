#pragma once

#include <cuda_runtime_api.h>

#include "ir/base/error.h"

// Header-only, because the modules that use it are separate shared libraries.
namespace heddle::comm {

// Throws UserError if `status` is an error. The message has the name of the call, and the text and
// the name that CUDA has for the error. Clears the last error of CUDA, because the next call that
// reads it would report it again.
inline void checkCuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  userError("{} failed: {} ({})", call, cudaGetErrorString(status), cudaGetErrorName(status));
}

}  // namespace heddle::comm

// HEDDLE_CUDA(cudaEventRecord, event, stream) calls the function and checks its result.
#define HEDDLE_CUDA(api, ...) ::heddle::comm::checkCuda(api(__VA_ARGS__), #api)
