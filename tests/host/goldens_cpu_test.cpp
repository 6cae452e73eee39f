// Generated C++ kernels and library calls against what PyTorch computes (tests/goldens/).
#include "tests/host/golden_runs.h"

namespace heddle::host {
namespace {

TEST(GoldensCpuTest, KernelsComputeWhatPyTorchDoes) { testing::expectGoldens(*makeCpuDevice()); }

}  // namespace
}  // namespace heddle::host
