#pragma once

#include <cuda_runtime_api.h>
#include <cudnn_graph.h>

#include <string_view>

namespace heddle::host::cudnn {

// UserError "what: the status, and what cuDNN says of it".
void check(cudnnStatus_t status, std::string_view what);
void check(cudaError_t status, std::string_view what);

// As DeviceGuard of host/device/cuda/kernel/cuda_check.h, which belongs to another module.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = -1;
};

}  // namespace heddle::host::cudnn
