#include "tests/host/gpu_device.h"
#include "tests/host/sizes/random_sizes.h"

namespace heddle::host::random_sizes_gpu_test {
namespace {

using RandomSizesGpu = GpuDeviceFixture;

TEST_F(RandomSizesGpu, EveryResultEqualsThatOfANewExecutor) {
  random_sizes::expectRandomSizes(*device_, 0, 1, 150, 3);
}

}  // namespace
}  // namespace heddle::host::random_sizes_gpu_test
