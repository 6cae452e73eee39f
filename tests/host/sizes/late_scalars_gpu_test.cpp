#include "tests/host/gpu_device.h"
#include "tests/host/sizes/late_scalars.h"

namespace heddle::host::late_scalars_gpu_test {
namespace {

using LateScalarsGpu = GpuDeviceFixture;

TEST_F(LateScalarsGpu, StepsOverACacheShareAPlan) { late_scalars::expectStepsShareAPlan(*device_); }

TEST_F(LateScalarsGpu, RowsWithMovedBoundsShareAPlan) {
  late_scalars::expectMovedRowsShareAPlan(*device_);
}

TEST_F(LateScalarsGpu, TensorsOnTheHostShareAPlan) {
  late_scalars::expectTensorsOnTheHostShareAPlan(*device_);
}

TEST_F(LateScalarsGpu, ShiftsShareAPlan) { late_scalars::expectShiftsShareAPlan(*device_); }

TEST_F(LateScalarsGpu, RowsOfUnalignedOutputsAreRead) {
  late_scalars::expectRowsOfUnalignedOutputsAreRead(*device_);
}

}  // namespace
}  // namespace heddle::host::late_scalars_gpu_test
