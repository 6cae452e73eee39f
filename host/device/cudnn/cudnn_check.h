#pragma once

#include <cuda_runtime_api.h>
#include <cudnn_graph.h>

#include <string_view>

namespace heddle::host::cudnn {

// Throw UserError unless the call `what` succeeded. The message contains `what`, the status and its
// text; for cuDNN also the version and the last error message.
void check(cudnnStatus_t status, std::string_view what);
void check(cudaError_t status, std::string_view what);

// Makes `device` the current device during its lifetime. DeviceGuard of
// host/device/cuda/kernel/cuda_check.h does the same but belongs to another module.
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
