#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "comm/cuda_call/cuda_call.h"

namespace heddle::host {

using comm::checkCuda;
// Throws UserError with the name of the call and the text and name of the error.
void checkCublas(cublasStatus_t status, const char* api);

// Makes `device` the current device of the calling thread during its lifetime. The destructor
// restores the former device. The reason: other ranks of the process, and the application that uses
// heddle, may use other devices from the same thread.
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

// Calls a function of cuBLAS and throws UserError if it fails, as HEDDLE_CUDA does for CUDA.
#define HEDDLE_CUBLAS(api, ...) ::heddle::host::checkCublas(api(__VA_ARGS__), #api)
