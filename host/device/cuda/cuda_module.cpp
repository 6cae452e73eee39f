#include "host/device/cuda_module.h"

#include "codegen/cuda/nvrtc.h"
#include "comm/cuda/in_process_cuda.h"
#include "comm/in_process/worlds.h"
#include "host/device/cuda/cuda_device.h"
#include "host/device/cuda/kernel/reduce_kernel.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

std::unique_ptr<Device> makeDevice(int ordinal) { return std::make_unique<CudaDevice>(ordinal); }

comm::DeviceReduce makeReduce(int device) {
  std::string why;
  const int count = countCudaDevices(why);
  HEDDLE_USER_CHECK_CODE(
      Unsupported, device >= 0 && device < count, "cuda:{} cannot be used: {}", device,
      count == 0 ? why : fmt::format("the number of GPUs of this machine is {}", count));
  return makeDeviceReduce(device, codegen::makeNvrtcCompiler(architectureOf(device)));
}

std::vector<std::unique_ptr<comm::World>> makeInProcessWorlds(int size, int device) {
  return comm::makeInProcessCudaWorlds(size, device, makeReduce(device));
}

int ordinalOf(const Device& device) {
  HEDDLE_CHECK(device.kind() == DeviceKind::Cuda, "{} is not a GPU", device.description());
  return static_cast<const CudaDevice&>(device).ordinal();
}

constexpr CudaModule kModule = {countCudaDevices, makeDevice, makeInProcessWorlds, makeReduce,
                                ordinalOf};

}  // namespace
}  // namespace heddle::host

extern "C" const heddle::host::CudaModule* heddleCudaModule() { return &heddle::host::kModule; }
