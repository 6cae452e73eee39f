#include "host/device/cudnn/cudnn_check.h"

#include "comm/cuda_call/cuda_call.h"
#include "host/device/attention.h"
#include "ir/base/check.h"

namespace heddle::host::cudnn {

void check(cudnnStatus_t status, std::string_view what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char text[1024] = "";
  cudnnGetLastErrorString(text, sizeof text);
  userError("cuDNN {}: {}: {}: {}", cudnnVersionText(static_cast<int64_t>(cudnnGetVersion())), what,
            cudnnGetErrorString(status), text);
}

CurrentDevice::CurrentDevice(int device) {
  HEDDLE_CUDA(cudaGetDevice, &before_);
  if (before_ != device) HEDDLE_CUDA(cudaSetDevice, device);
}

CurrentDevice::~CurrentDevice() { cudaSetDevice(before_); }

}  // namespace heddle::host::cudnn
