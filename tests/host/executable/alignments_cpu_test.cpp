// Tests tensors at addresses of every alignment on a CPU.
#include "host/device/cpu/cpu_device.h"
#include "tests/host/executable/alignments.h"

namespace heddle::host::alignments_cpu_test {
namespace {

TEST(AlignmentsCpu, ResultsDoNotDependOnAlignment) {
  const std::unique_ptr<Device> device = makeCpuDevice();
  testing::expectEqualResultsAtAllAlignments(*device);
}

TEST(AlignmentsCpu, CatsDoNotDependOnAlignment) {
  const std::unique_ptr<Device> device = makeCpuDevice();
  testing::expectEqualCatsAtAllAlignments(*device);
}

}  // namespace
}  // namespace heddle::host::alignments_cpu_test
