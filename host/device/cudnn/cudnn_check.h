#pragma once

#include <cudnn_graph.h>

#include <string_view>

namespace heddle::host::cudnn {

// Throws UserError if `status` is an error. `status` is the result of a call of cuDNN, and `what`
// describes this call. The message contains `what`, the text of the status, and the version and the
// last error message of cuDNN.
void check(cudnnStatus_t status, std::string_view what);

// The constructor makes `device` the current CUDA device of the calling thread. The destructor
// restores the previous one. DeviceGuard (host/device/cuda/kernel/cuda_check.h) does the same, but
// belongs to the module libheddle_cuda, which this module does not use.
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
