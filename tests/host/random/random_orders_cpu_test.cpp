#include <cstdlib>

#include "tests/host/random/random_orders.h"
#include "tests/sanitized.h"

namespace heddle::host::random_orders_cpu_test {
namespace {

// Compiling would take long, so the reference evaluator runs the kernels.
TEST(RandomOrders, ReferenceKernelsMatchTheReferenceAndTheRequiredOrders) {
  setenv("HEDDLE_CXX", "/nonexistent/compiler", 1);
  const char* from = std::getenv("HEDDLE_RANDOM_FROM");
  const char* count = std::getenv("HEDDLE_RANDOM_COUNT");
  const uint64_t first = from != nullptr ? std::strtoull(from, nullptr, 10) : 1;
  const uint64_t cases = count != nullptr ? std::strtoull(count, nullptr, 10)
                                          : heddle::testing::casesOf<uint64_t>(300, 20);
  for (uint64_t seed = first; seed < first + cases; ++seed)
    random_orders::check(seed, DeviceKind::Cpu);
  unsetenv("HEDDLE_CXX");
}

TEST(RandomOrders, CompiledKernelsMatchTheReferenceAndTheRequiredOrders) {
  for (uint64_t seed = 100001; seed <= heddle::testing::casesOf(100012U, 100002U); ++seed)
    random_orders::check(seed, DeviceKind::Cpu);
}

}  // namespace
}  // namespace heddle::host::random_orders_cpu_test
