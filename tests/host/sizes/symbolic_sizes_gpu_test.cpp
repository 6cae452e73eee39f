#include "tests/host/gpu_device.h"
#include "tests/host/sizes/symbolic_sizes.h"

namespace heddle::host::symbolic_sizes_gpu_test {
namespace {

using SymbolicSizesGpu = GpuDeviceFixture;

TEST_F(SymbolicSizesGpu, SizesOfOneBroadcast) { symbolic_sizes::expectAllPairs(*device_); }

}  // namespace
}  // namespace heddle::host::symbolic_sizes_gpu_test
