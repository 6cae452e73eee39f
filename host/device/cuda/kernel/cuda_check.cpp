#include "host/device/cuda/kernel/cuda_check.h"

#include "ir/base/check.h"

namespace heddle::host {

void checkCublas(cublasStatus_t status, const char* api) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  userError("{} failed: {} ({})", api, cublasLtGetStatusString(status),
            cublasLtGetStatusName(status));
}

namespace {

// The current device of this thread, if a guard exists; otherwise -1.
thread_local int known_device = -1;

}  // namespace

Device::Current makeCurrent(int device) {
  Device::Current before{device, known_device};
  if (known_device == device) return before;
  HEDDLE_CUDA(cudaGetDevice, &before.device);
  if (before.device != device) HEDDLE_CUDA(cudaSetDevice, device);
  known_device = device;
  return before;
}

void restoreCurrent(const Device::Current& before) noexcept {
  if (known_device != before.device) cudaSetDevice(before.device);
  known_device = before.known;
}

DeviceGuard::DeviceGuard(int device) : before_(makeCurrent(device)) {}
DeviceGuard::~DeviceGuard() { restoreCurrent(before_); }

}  // namespace heddle::host
