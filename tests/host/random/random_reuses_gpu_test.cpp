#include "tests/host/gpu_device.h"
#include "tests/host/random/random_reuses.h"

namespace heddle::host::random_reuses_gpu_test {
namespace {

using RandomReusesGpu = GpuDeviceFixture;

TEST_F(RandomReusesGpu, OneRankMatchesTheReference) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    random_reuses::expectReference(seed, 1, DeviceKind::Cuda);
  }
}

TEST_F(RandomReusesGpu, SeveralRanksMatchTheReference) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    random_reuses::expectReference(seed, 2, DeviceKind::Cuda);
  }
}

}  // namespace
}  // namespace heddle::host::random_reuses_gpu_test
