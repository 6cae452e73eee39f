// Compares generated CUDA kernels and cuBLASLt with results of PyTorch (tests/goldens/).
#include "tests/host/whole/golden_runs.h"

namespace heddle::host::goldens_gpu_test {
namespace {

class GoldensGpu : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldensGpu, KernelsMatchPyTorch) {
  std::string why;
  if (cudaDeviceCount(why) == 0) GTEST_SKIP() << why;
  testing::expectGoldens(*makeCudaDevice(0), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Families, GoldensGpu,
                         ::testing::ValuesIn(heddle::testing::goldenFamilies()),
                         testing::familyName);

}  // namespace
}  // namespace heddle::host::goldens_gpu_test
