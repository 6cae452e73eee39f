// Generated CUDA kernels and cuBLASLt against what PyTorch computes (tests/goldens/).
#include "tests/host/golden_runs.h"

namespace heddle::host {
namespace {

TEST(GoldensGpuTest, KernelsComputeWhatPyTorchDoes) {
  std::string why;
  if (cudaDeviceCount(why) == 0) GTEST_SKIP() << why;
  testing::expectGoldens(*makeCudaDevice(0));
}

}  // namespace
}  // namespace heddle::host
