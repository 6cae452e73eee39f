#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

namespace heddle::host {

// UserError "cudaX: string of the error". A machine that is out of memory is told apart by the
// callers that can say more.
void checkCuda(cudaError_t status, const char* api);
void checkCublas(cublasStatus_t status, const char* api);

// Makes `device` the calling thread's current one while it lives: several ranks of a process, and
// the program around them, may use other devices from the same thread.
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

// HEDDLE_CUDA(cudaEventRecord, event, stream): calls and checks.
#define HEDDLE_CUDA(api, ...) ::heddle::host::checkCuda(api(__VA_ARGS__), #api)
#define HEDDLE_CUBLAS(api, ...) ::heddle::host::checkCublas(api(__VA_ARGS__), #api)
