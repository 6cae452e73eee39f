// Compares generated C++ kernels and library calls with results of PyTorch (tests/goldens/).
#include "host/device/cpu/cpu_device.h"
#include "tests/host/whole/golden_runs.h"

namespace heddle::host::goldens_cpu_test {
namespace {

class GoldensCpu : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldensCpu, KernelsMatchPyTorch) { testing::expectGoldens(*makeCpuDevice(), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Families, GoldensCpu,
                         ::testing::ValuesIn(heddle::testing::goldenFamilies()),
                         testing::familyName);

}  // namespace
}  // namespace heddle::host::goldens_cpu_test
