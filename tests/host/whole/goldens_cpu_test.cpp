// Compares generated C++ kernels and library calls with results of PyTorch (tests/goldens/).
#include "host/device/cpu/cpu_device.h"
#include "tests/host/whole/golden_runs.h"

namespace heddle::host::goldens_cpu_test {
namespace {

// The parameters are a family and one of kParts parts of its batches. ctest runs the parts at the
// same time, because their kernels take long to compile.
class GoldensCpu : public ::testing::TestWithParam<std::tuple<std::string, size_t>> {};
constexpr size_t kParts = 4;

TEST_P(GoldensCpu, KernelsMatchPyTorch) {
  const auto& [family, part] = GetParam();
  testing::expectGoldens(*makeCpuDevice(), family, part, kParts);
}

INSTANTIATE_TEST_SUITE_P(Families, GoldensCpu,
                         ::testing::Combine(::testing::ValuesIn(heddle::testing::goldenFamilies()),
                                            ::testing::Range(size_t{0}, kParts)),
                         [](const ::testing::TestParamInfo<GoldensCpu::ParamType>& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param),
                                              std::get<1>(info.param));
                         });

}  // namespace
}  // namespace heddle::host::goldens_cpu_test
