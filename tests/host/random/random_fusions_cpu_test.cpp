// Compares compiled CPU kernels of random fusions (tools/random/) with the reference.
#include "host/device/cpu/cpu_device.h"
#include "tests/host/random/random_fusions.h"
#include "tests/sanitized.h"

namespace heddle::host::random_fusions_cpu_test {
namespace {

constexpr auto kCompiled = heddle::testing::casesOf<uint64_t>(25, 3);
constexpr auto kStatic = heddle::testing::casesOf<uint64_t>(400, 20);

TEST(RandomFusionsCpu, CompiledKernelsMatchTheReference) {
  const auto device = makeCpuDevice();
  testing::expectRandomFusions(*device, testing::seedsOf(1, kCompiled));
}

// Streams run in adversarial order, and fresh memory is NaN.
TEST(RandomFusionsCpu, CompiledKernelsMatchInAdversarialOrder) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 3});
  testing::expectRandomFusions(*device, testing::seedsOf(1001, kCompiled));
}

// Checks everything that needs no compiled kernels (random::checkWithoutDevice).
TEST(RandomFusionsCpu, TextSegmentsAndLoweringAreConsistent) {
  const testing::Seeds seeds = testing::seedsOf(2001, kStatic);
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    const random::FusionCase made = random::randomCase(seed);
    const std::string failure = random::checkWithoutDevice(made);
    ASSERT_EQ(failure, "") << "seed " << seed << "\n" << testing::keptAs(made, seed);
  }
}

}  // namespace
}  // namespace heddle::host::random_fusions_cpu_test
