// 0-d inputs in host memory on a GPU.
#include "tests/host/gpu_device.h"
#include "tests/host/run/by_value_inputs.h"

namespace heddle::host::host_values_gpu_test {
namespace {

class HostValuesGpuTest : public GpuDeviceTest {};

TEST_F(HostValuesGpuTest, EveryTypeByValue) { testing::expectValuesOfEveryType(*device_); }

TEST_F(HostValuesGpuTest, WhatIsNoKernelReadsMemory) { testing::expectValuesInMemory(*device_); }

}  // namespace
}  // namespace heddle::host::host_values_gpu_test
