#pragma once

#include <cuda_runtime_api.h>

#include "ir/base/error.h"

// Header-only, because the modules that use it are separate shared libraries.
namespace heddle::comm {

// Throws UserError with the name of the call and CUDA's text and name of the error. Clears the
// error, because the next call that reads the last error would report it again.
inline void checkCuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  userError("{} failed: {} ({})", call, cudaGetErrorString(status), cudaGetErrorName(status));
}

}  // namespace heddle::comm

// HEDDLE_CUDA(cudaEventRecord, event, stream) calls the function and checks its result.
#define HEDDLE_CUDA(api, ...) ::heddle::comm::checkCuda(api(__VA_ARGS__), #api)
