#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/modules.h"
#include "host/device/device.h"

namespace heddle::host {

// The entry points of the module libheddle_cuda. The module exports `extern "C" const CudaModule*
// heddleCudaModule()`. cudaModule() (host/device/load_module.h) loads it.
struct CudaModule {
  // Returns the number of usable GPUs, or 0 with the reason in `why`.
  int (*deviceCount)(std::string& why);
  // Creates the device of one GPU. Throws UserError if there is no such GPU.
  std::unique_ptr<Device> (*makeDevice)(int ordinal);
  // Creates the Worlds of a job of `size` ranks in this process, one per rank. All ranks share GPU
  // `device`. Each rank must use its World on its own thread.
  std::vector<std::unique_ptr<comm::World>> (*makeInProcessWorlds)(int size, int device);
  // Creates a function that reduces buffers in memory of GPU `device`. Its results equal those of
  // comm::reduceOnHost().
  comm::DeviceReduce (*makeReduce)(int device);
  // Returns the ordinal of a device that makeDevice() created.
  int (*ordinalOf)(const Device& device);
};

}  // namespace heddle::host
