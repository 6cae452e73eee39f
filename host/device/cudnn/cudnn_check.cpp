#include "host/device/cudnn/cudnn_check.h"

#include "ir/base/check.h"

namespace heddle::host::cudnn {

void check(cudnnStatus_t status, std::string_view what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char text[1024] = "";
  cudnnGetLastErrorString(text, sizeof text);
  userError("cuDNN {}: {}: {}: {}", cudnnGetVersion(), what, cudnnGetErrorString(status), text);
}

void check(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  // This call clears the error. Otherwise a later call of cudaGetLastError() would return it again.
  cudaGetLastError();
  userError("{}: {} ({})", what, cudaGetErrorString(status), cudaGetErrorName(status));
}

CurrentDevice::CurrentDevice(int device) {
  check(cudaGetDevice(&before_), "cudaGetDevice");
  if (before_ != device) check(cudaSetDevice(device), "cudaSetDevice");
}

CurrentDevice::~CurrentDevice() { cudaSetDevice(before_); }

}  // namespace heddle::host::cudnn
