#include "host/device/cpu/cpu_device.h"
#include "tests/host/sizes/random_sizes.h"
#include "tests/sanitized.h"

namespace heddle::host::random_sizes_cpu_test {
namespace {

TEST(RandomSizes, EveryResultEqualsThatOfANewExecutor) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  random_sizes::expectRandomSizes(*device,
                                  2000 / (heddle::testing::kOneIn * heddle::testing::kOneIn));
}

}  // namespace
}  // namespace heddle::host::random_sizes_cpu_test
