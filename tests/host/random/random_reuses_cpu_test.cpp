#include <functional>

#include "tests/host/random/random_reuses.h"
#include "tests/sanitized.h"

namespace heddle::host::random_reuses_cpu_test {
namespace {

constexpr auto kSeeds = heddle::testing::casesOf<uint64_t>(25, 3);

void expectReferences(const std::function<int(uint64_t)>& ranks) {
  const testing::Seeds seeds = testing::seedsOf(1, kSeeds);
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    random_reuses::expectReference(seed, ranks(seed), DeviceKind::Cpu);
  }
}

TEST(RandomReuses, OneRankMatchesTheReference) {
  expectReferences([](uint64_t) { return 1; });
}

TEST(RandomReuses, SeveralRanksMatchTheReference) {
  expectReferences([](uint64_t seed) { return seed % 2 == 0 ? 2 : 4; });
}

}  // namespace
}  // namespace heddle::host::random_reuses_cpu_test
