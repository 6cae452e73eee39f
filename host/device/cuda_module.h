#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/modules.h"
#include "host/device/device.h"

namespace heddle::host {

// The entry points of libheddle_cuda, which exports `extern "C" const CudaModule*
// heddleCudaModule()`. host/device/load_module.h loads it.
struct CudaModule {
  // Returns the number of usable GPUs, or 0 with the reason in `why`.
  int (*deviceCount)(std::string& why);
  // Creates the device of one GPU. UserError if there is no such GPU.
  std::unique_ptr<Device> (*makeDevice)(int ordinal);
  // Creates `size` ranks of this process that share GPU `device`. One thread uses each rank.
  std::vector<std::unique_ptr<comm::World>> (*makeInProcessWorlds)(int size, int device);
  // Creates the reduction that these ranks use. It computes the same as comm::reduceOnHost, for
  // memory of GPU `device`.
  comm::DeviceReduce (*makeReduce)(int device);
  // Returns the ordinal of a device that makeDevice() created.
  int (*ordinalOf)(const Device& device);
};

}  // namespace heddle::host
