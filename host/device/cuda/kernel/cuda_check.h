#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

namespace heddle::host {

// Throw UserError "<api>: <error text> (<error name>)" unless the call succeeded. Callers that can
// say more about a lack of memory check for that themselves.
void checkCuda(cudaError_t status, const char* api);
void checkCublas(cublasStatus_t status, const char* api);

// Makes `device` the current device of the calling thread during its lifetime, then restores the
// former one. It is needed because other ranks of the process, and the program that uses heddle,
// may use other devices from the same thread.
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

// HEDDLE_CUDA(cudaEventRecord, event, stream) calls the function and checks the result.
#define HEDDLE_CUDA(api, ...) ::heddle::host::checkCuda(api(__VA_ARGS__), #api)
#define HEDDLE_CUBLAS(api, ...) ::heddle::host::checkCublas(api(__VA_ARGS__), #api)
