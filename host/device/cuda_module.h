#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/modules.h"
#include "host/device/device.h"

namespace heddle::host {

// libheddle_cuda: `extern "C" const CudaModule* heddleCudaModule()`, loaded by
// host/device/load_module.h.
struct CudaModule {
  // GPUs that can be used, or 0 with the reason in `why`.
  int (*deviceCount)(std::string& why);
  // UserError when there is no such GPU.
  std::unique_ptr<Device> (*makeDevice)(int ordinal);
  // `size` ranks of this process on GPU `device`, each to be used by a thread of its own.
  std::vector<std::unique_ptr<comm::World>> (*makeInProcessWorlds)(int size, int device);
  // The reduction that those ranks use: comm::reduceOnHost for memory of GPU `device`.
  comm::DeviceReduce (*makeReduce)(int device);
  // Of a device that makeDevice() made.
  int (*ordinalOf)(const Device& device);
};

}  // namespace heddle::host
