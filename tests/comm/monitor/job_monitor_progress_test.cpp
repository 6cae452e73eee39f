// Tests that a rank which repeats its task makes progress in the view of the job monitor.
#include <gtest/gtest.h>

#include "comm/in_process/worlds.h"
#include "comm/monitor/job_monitor.h"

namespace heddle::comm::job_monitor_progress_test {
namespace {

// Without this rule, JobMonitorOptions::patience could expire while a rank tunes many kernels.
TEST(JobMonitorProgress, TaskThatBeginsAgainIsProgress) {
  const std::unique_ptr<World> world = makeSingleWorld();
  JobMonitor monitor(*world, {});
  const World::Task task(world.get(), RankTask::TuningKernels);
  const uint64_t before = monitor.mine().progress;
  { const World::Task step(world.get(), RankTask::TuningKernels); }
  const uint64_t after = monitor.mine().progress;
  EXPECT_GT(after, before);
  { const World::Task step(world.get(), RankTask::Checking); }
  EXPECT_EQ(monitor.mine().progress, after);
}

}  // namespace
}  // namespace heddle::comm::job_monitor_progress_test
