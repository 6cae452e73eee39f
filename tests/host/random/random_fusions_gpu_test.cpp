// Compares random fusions (tools/random/) on a GPU with the reference.
#include "tests/host/gpu_device.h"
#include "tests/host/random/random_fusions.h"

namespace heddle::host::random_fusions_gpu_test {
namespace {

using RandomFusionsGpu = GpuDeviceFixture;

random::GeneratorOptions onCuda() {
  random::GeneratorOptions options;
  options.gelu_products = false;
  return options;
}

// The seeds are divided into four tests of 125 seeds. Each test then stays within the time limit.
TEST_F(RandomFusionsGpu, FirstSeedsMatchTheReference) {
  testing::expectRandomFusions(*device_, testing::seedsOf(1, 125), onCuda());
}
TEST_F(RandomFusionsGpu, SecondSeedsMatchTheReference) {
  testing::expectRandomFusions(*device_, testing::seedsOf(126, 125), onCuda());
}
TEST_F(RandomFusionsGpu, ThirdSeedsMatchTheReference) {
  testing::expectRandomFusions(*device_, testing::seedsOf(251, 125), onCuda());
}
TEST_F(RandomFusionsGpu, FourthSeedsMatchTheReference) {
  testing::expectRandomFusions(*device_, testing::seedsOf(376, 125), onCuda());
}

}  // namespace
}  // namespace heddle::host::random_fusions_gpu_test
