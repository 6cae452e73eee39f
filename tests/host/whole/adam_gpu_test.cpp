#include <gtest/gtest.h>

#include "tests/host/adam_steps.h"
#include "tests/host/gpu_device.h"
#include "tests/host/whole/adam_training.h"

namespace heddle::host::adam_gpu_test {
namespace {

using AdamGpu = GpuDeviceFixture;

TEST_F(AdamGpu, ThousandStepsInPlaceMatchTheReference) {
  adam_training::expectThousandSteps(*device_);
}

TEST_F(AdamGpu, ParametersOfOddSizesNeedOneLaunch) {
  adam_steps::expectStep(50, 1, DeviceKind::Cuda);
  adam_steps::expectStep(200, 1, DeviceKind::Cuda);
}

TEST_F(AdamGpu, ParametersOnSeveralRanksNeedOneLaunch) {
  adam_steps::expectStep(50, 2, DeviceKind::Cuda);
}

}  // namespace
}  // namespace heddle::host::adam_gpu_test
