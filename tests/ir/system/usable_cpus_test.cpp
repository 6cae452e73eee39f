#include "ir/system/usable_cpus.h"

#include <gtest/gtest.h>

#include <vector>

namespace heddle::usable_cpus_test {
namespace {

// Returns the CPUs on which the calling thread may run.
std::vector<int> allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

TEST(UsableCpus, RestrictedThreadCountsItsCpus) {
  const std::vector<int> cpus = allowed();
  if (cpus.empty()) GTEST_SKIP() << "the system has more CPUs than fit in cpu_set_t";
  std::vector<int> counts;
  // The restriction applies only to this thread, and ends with it.
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (size_t i = 0; i < cpus.size() && i < 3; ++i) {
      CPU_SET(cpus[i], &set);
      ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
      counts.push_back(usableCpus());
    }
  }).join();
  for (size_t i = 0; i < counts.size(); ++i) EXPECT_EQ(counts[i], static_cast<int>(i) + 1);
}

}  // namespace
}  // namespace heddle::usable_cpus_test
