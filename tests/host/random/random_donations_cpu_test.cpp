#include <functional>

#include "tests/host/random/random_donations.h"
#include "tests/host/random/random_fusions.h"
#include "tests/sanitized.h"

namespace heddle::host::random_donations_cpu_test {
namespace {

constexpr auto kSeeds = heddle::testing::casesOf<uint64_t>(25, 3);

void expectReferences(const std::function<int(uint64_t)>& ranks) {
  const testing::Seeds seeds = testing::seedsOf(1, kSeeds);
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    random_donations::expectReference(seed, ranks(seed), DeviceKind::Cpu);
  }
}

TEST(RandomDonations, OneRankMatchesTheReference) {
  expectReferences([](uint64_t) { return 1; });
}

TEST(RandomDonations, SeveralRanksMatchTheReference) {
  expectReferences([](uint64_t seed) { return seed % 3 == 0 ? 4 : seed % 3 == 1 ? 2 : 3; });
}

}  // namespace
}  // namespace heddle::host::random_donations_cpu_test
