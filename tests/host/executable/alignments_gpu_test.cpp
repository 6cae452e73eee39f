// Tests tensors at addresses of every alignment on a GPU.
#include "tests/host/executable/alignments.h"
#include "tests/host/gpu_device.h"

namespace heddle::host::alignments_gpu_test {
namespace {

class AlignmentsGpu : public GpuDeviceFixture {};

TEST_F(AlignmentsGpu, ResultsDoNotDependOnAlignment) {
  testing::expectEqualResultsAtAllAlignments(*device_);
}

TEST_F(AlignmentsGpu, CatsDoNotDependOnAlignment) {
  testing::expectEqualCatsAtAllAlignments(*device_);
}

}  // namespace
}  // namespace heddle::host::alignments_gpu_test
