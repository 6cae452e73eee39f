#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "comm/cuda_call/cuda_call.h"

namespace heddle::host {

using comm::checkCuda;
// Throws UserError if a call of cuBLAS failed. The message contains the name of the call, and the
// text and name of the error.
void checkCublas(cublasStatus_t status, const char* api);

// The constructor makes `device` the current CUDA device of the calling thread. The destructor
// restores the previous one. This is necessary because the application, and other ranks of the
// process, may use other devices from the same thread.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int before_ = -1;
  bool changed_ = false;
};

}  // namespace heddle::host

// Calls a function of cuBLAS, and throws UserError if the call fails. HEDDLE_CUDA does the same for
// functions of CUDA.
#define HEDDLE_CUBLAS(api, ...) ::heddle::host::checkCublas(api(__VA_ARGS__), #api)
