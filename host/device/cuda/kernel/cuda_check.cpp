#include "host/device/cuda/kernel/cuda_check.h"

#include <cuda.h>

#include "comm/cuda_call/driver_function.h"
#include "ir/base/check.h"

namespace heddle::host {

void checkCublas(cublasStatus_t status, const char* api) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  userError("{} failed: {} ({})", api, cublasLtGetStatusString(status),
            cublasLtGetStatusName(status));
}

namespace {

// The current device of this thread, if makeCurrent() has set it and restoreCurrent() has not been
// called yet; otherwise -1.
thread_local int known_device = -1;

// Returns the current CUDA device of the thread. The driver takes a third of the time of
// cudaGetDevice(), but returns an error if the thread has no current context.
int currentDevice() {
  static const auto ask = comm::driverFunction<CUresult (*)(CUdevice*)>("cuCtxGetDevice");
  CUdevice device = -1;
  if (ask != nullptr && ask(&device) == CUDA_SUCCESS) return device;
  HEDDLE_CUDA(cudaGetDevice, &device);
  return device;
}

}  // namespace

Device::Current makeCurrent(int device) {
  Device::Current before{device, known_device};
  if (known_device == device) return before;
  before.device = currentDevice();
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
