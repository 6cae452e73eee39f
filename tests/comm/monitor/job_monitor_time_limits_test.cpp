// Tests the time limits of the job monitor. They must be equal on all ranks.
#include <gtest/gtest.h>

#include "comm/in_process/worlds.h"
#include "comm/monitor/job_monitor.h"
#include "ir/base/error.h"
#include "tests/comm/ranks.h"

namespace heddle::comm::conformance::job_monitor_time_limits_test {
namespace {

using WorldPtr = std::unique_ptr<World>;

// Requires that the job monitor of every rank throws if rank 2 has other limits.
void expectRefused(const std::function<void(JobMonitorOptions&)>& change,
                   const std::string& limits) {
  const auto errors = runRanks(makeInProcessWorlds(3), [&](WorldPtr& world) {
    JobMonitorOptions options;
    if (world->rank() == 2) change(options);
    const JobMonitor monitor(*world, options);
  });
  // The rank that throws first aborts the World. The other ranks may report only the abort.
  const std::string expected =
      "the time limits differ between ranks, and must not: rank 0 has a deadline of 10 s and a "
      "patience of 600 s, rank 2 has " +
      limits;
  int named = 0;
  for (const std::string& error : errors) {
    EXPECT_FALSE(error.empty());
    if (error.find(expected) != std::string::npos) ++named;
  }
  EXPECT_GE(named, 1) << errors[0];
}

TEST(JobMonitorTimeLimits, DifferentLimitsAreRefused) {
  expectRefused([](JobMonitorOptions& options) { options.deadline = 5; },
                "a deadline of 5 s and a patience of 600 s");
  expectRefused([](JobMonitorOptions& options) { options.patience = 0; },
                "a deadline of 10 s and a patience of 0 s");
}

}  // namespace
}  // namespace heddle::comm::conformance::job_monitor_time_limits_test
