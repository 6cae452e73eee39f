// Tests 0-d inputs in host memory on a GPU.
#include "tests/host/gpu_device.h"
#include "tests/host/plan/by_value_inputs.h"

namespace heddle::host::by_value_inputs_gpu_test {
namespace {

class ByValueInputsGpu : public GpuDeviceFixture {};

TEST_F(ByValueInputsGpu, EveryDtypeIsPassedByValue) { testing::expectValuesOfEveryType(*device_); }

TEST_F(ByValueInputsGpu, OtherInstructionsReadDeviceMemory) {
  testing::expectValuesInMemory(*device_);
}

}  // namespace
}  // namespace heddle::host::by_value_inputs_gpu_test
