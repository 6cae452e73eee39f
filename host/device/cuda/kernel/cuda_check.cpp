#include "host/device/cuda/kernel/cuda_check.h"

#include "ir/base/error.h"

namespace heddle::host {

void checkCublas(cublasStatus_t status, const char* api) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  userError("{} failed: {} ({})", api, cublasLtGetStatusString(status),
            cublasLtGetStatusName(status));
}

DeviceGuard::DeviceGuard(int device) {
  HEDDLE_CUDA(cudaGetDevice, &before_);
  if (before_ == device) return;
  HEDDLE_CUDA(cudaSetDevice, device);
  changed_ = true;
}

DeviceGuard::~DeviceGuard() {
  if (changed_) cudaSetDevice(before_);
}

}  // namespace heddle::host
