#include "tests/host/gpu_device.h"
#include "tests/host/views/views.h"

namespace heddle::host::views_gpu_test {
namespace {

using namespace views;
using ViewsGpu = GpuDeviceFixture;

TEST_F(ViewsGpu, ChainsOfViewsNeedNoKernel) { expectChainsWithoutKernel(*device_); }
TEST_F(ViewsGpu, ScalarsDecideOffsetsAndSizes) { expectOffsetsAndSizesOfScalars(*device_); }
TEST_F(ViewsGpu, ComputedValueIsStoredOnce) { expectComputedValueStoredOnce(*device_); }
TEST_F(ViewsGpu, PreallocatedOutputGetsACopy) { expectCopyInPreallocatedOutput(*device_); }
TEST_F(ViewsGpu, RequiredOrderGivesDenseMemory) { expectDenseMemoryForRequiredOrder(*device_); }
TEST_F(ViewsGpu, DiagonalsAreViews) { expectDiagonals(*device_); }
TEST_F(ViewsGpu, DiagonalsOnRanksAreThoseOfOneRank) { expectDiagonalsOnRanks(DeviceKind::Cuda); }
TEST_F(ViewsGpu, ScalarTensorIsExpanded) { expectExpandedScalarTensor(*device_); }
TEST_F(ViewsGpu, RepeatedElementCannotBeWritten) { expectErrorOfWrittenRepeat(*device_); }
TEST_F(ViewsGpu, RanksGetTheResultOfOneRank) { expectResultOfOneRank(DeviceKind::Cuda); }

}  // namespace
}  // namespace heddle::host::views_gpu_test
