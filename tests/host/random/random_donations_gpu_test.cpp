#include "tests/host/gpu_device.h"
#include "tests/host/random/random_donations.h"

namespace heddle::host::random_donations_gpu_test {
namespace {

using RandomDonationsGpu = GpuDeviceFixture;

TEST_F(RandomDonationsGpu, OneRankMatchesTheReference) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    random_donations::expectReference(seed, 1, DeviceKind::Cuda);
  }
}

TEST_F(RandomDonationsGpu, SeveralRanksMatchTheReference) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    random_donations::expectReference(seed, 2, DeviceKind::Cuda);
  }
}

}  // namespace
}  // namespace heddle::host::random_donations_gpu_test
