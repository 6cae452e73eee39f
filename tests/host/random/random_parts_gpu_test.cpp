#include <gtest/gtest.h>

#include <cstdint>

#include "tests/host/gpu_device.h"
#include "tests/host/random/random_parts.h"

namespace heddle::host::random_parts_gpu_test {
namespace {

using RandomPartsGpu = GpuDeviceFixture;

TEST_F(RandomPartsGpu, OneRankMatchesTheReference) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    random_parts::expectReference(seed, 1, DeviceKind::Cuda);
  }
}

TEST_F(RandomPartsGpu, SeveralRanksMatchTheReference) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    random_parts::expectReference(seed, 2, DeviceKind::Cuda);
  }
}

}  // namespace
}  // namespace heddle::host::random_parts_gpu_test
