#include <gtest/gtest.h>

#include <cstdint>

#include "tests/host/random/random_fusions.h"
#include "tests/host/random/random_parts.h"
#include "tests/sanitized.h"

namespace heddle::host::random_parts_cpu_test {
namespace {

constexpr auto kSeeds = heddle::testing::casesOf<uint64_t>(8, 2);

TEST(RandomParts, OneRankMatchesTheReference) {
  const testing::Seeds seeds = testing::seedsOf(1, kSeeds);
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    random_parts::expectReference(seed, 1, DeviceKind::Cpu);
  }
}

TEST(RandomParts, SeveralRanksMatchTheReference) {
  const testing::Seeds seeds = testing::seedsOf(1, kSeeds);
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    random_parts::expectReference(seed, seed % 2 == 0 ? 2 : 3, DeviceKind::Cpu);
  }
}

}  // namespace
}  // namespace heddle::host::random_parts_cpu_test
