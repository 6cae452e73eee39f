// Generated C++ kernels and library calls against what PyTorch computes (tests/goldens/).
#include "host/device/cpu/cpu_device.h"
#include "tests/host/whole/golden_runs.h"

namespace heddle::host::goldens_cpu_test {
namespace {

class GoldensCpuTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldensCpuTest, KernelsComputeWhatPyTorchDoes) {
  testing::expectGoldens(*makeCpuDevice(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Families, GoldensCpuTest,
                         ::testing::ValuesIn(heddle::testing::goldenFamilies()),
                         testing::familyName);

}  // namespace
}  // namespace heddle::host::goldens_cpu_test
