// Random fusions (tools/random/) on a GPU against the reference.
#include "tests/host/gpu_device.h"
#include "tests/host/random/random_fusions.h"

namespace heddle::host::random_fusions_gpu_test {
namespace {

using RandomFusionsGpuTest = GpuDeviceTest;

random::GeneratorOptions onCuda() {
  random::GeneratorOptions options;
  options.gelu_products = false;
  return options;
}

// Four tests of 125 seeds: each stays under the time a test may take.
TEST_F(RandomFusionsGpuTest, Seeds1) {
  testing::expectRandomFusions(*device_, testing::seedsOf(1, 125), onCuda());
}
TEST_F(RandomFusionsGpuTest, Seeds2) {
  testing::expectRandomFusions(*device_, testing::seedsOf(126, 125), onCuda());
}
TEST_F(RandomFusionsGpuTest, Seeds3) {
  testing::expectRandomFusions(*device_, testing::seedsOf(251, 125), onCuda());
}
TEST_F(RandomFusionsGpuTest, Seeds4) {
  testing::expectRandomFusions(*device_, testing::seedsOf(376, 125), onCuda());
}

}  // namespace
}  // namespace heddle::host::random_fusions_gpu_test
