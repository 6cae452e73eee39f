#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "comm/cuda_call/cuda_call.h"
#include "host/device/device.h"
#include "ir/base/check.h"

namespace heddle::host {

using comm::checkCuda;
// Throws UserError if a call of cuBLAS failed. The message contains the name of the call, and the
// text and name of the error.
void checkCublas(cublasStatus_t status, const char* api);

// These functions implement Device::makeCurrent() and Device::restoreCurrent() for the GPU
// `device`.
Device::Current makeCurrent(int device);
void restoreCurrent(const Device::Current& before) noexcept;

// The constructor makes `device` the current CUDA device of the calling thread. The destructor
// restores the previous one. The application, or another rank of the process, may thus use another
// device on the same thread.
//
// While a guard exists, no other code of the thread may change the current device. A nested guard
// for the same device can therefore skip all calls of CUDA.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  Device::Current before_;
};

}  // namespace heddle::host

// Calls a function of cuBLAS, and throws UserError if the call fails. HEDDLE_CUDA does the same for
// functions of CUDA.
#define HEDDLE_CUBLAS(api, ...) ::heddle::host::checkCublas(api(__VA_ARGS__), #api)
