#include "host/device/cpu/cpu_device.h"
#include "tests/host/views/views.h"

namespace heddle::host::views_cpu_test {
namespace {

using namespace views;

std::unique_ptr<Device> cpu() { return makeCpuDevice({.threads = 1, .adversarial_seed = {}}); }

TEST(Views, ChainsOfViewsNeedNoKernel) { expectChainsWithoutKernel(*cpu()); }
TEST(Views, ScalarsDecideOffsetsAndSizes) { expectOffsetsAndSizesOfScalars(*cpu()); }
TEST(Views, ComputedValueIsStoredOnce) { expectComputedValueStoredOnce(*cpu()); }
TEST(Views, PreallocatedOutputGetsACopy) { expectCopyInPreallocatedOutput(*cpu()); }
TEST(Views, RequiredOrderGivesDenseMemory) { expectDenseMemoryForRequiredOrder(*cpu()); }
TEST(Views, DiagonalsAreViews) { expectDiagonals(*cpu()); }
TEST(Views, DiagonalsOnRanksAreThoseOfOneRank) { expectDiagonalsOnRanks(DeviceKind::Cpu); }
TEST(Views, ScalarTensorIsExpanded) { expectExpandedScalarTensor(*cpu()); }
TEST(Views, RepeatedElementCannotBeWritten) { expectErrorOfWrittenRepeat(*cpu()); }
TEST(Views, RanksGetTheResultOfOneRank) { expectResultOfOneRank(DeviceKind::Cpu); }

}  // namespace
}  // namespace heddle::host::views_cpu_test
