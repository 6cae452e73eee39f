// Tests how the job monitor (comm/monitor/job_monitor.h) finds the rank that caused a failure
// outside of runs. Ranks then wait in a call of their World, or do a task, for example compile.
// Some tests describe the ranks by snapshots, others run them as threads.
#include "comm/monitor/detection.h"

#include <atomic>
#include <optional>
#include <thread>

#include "comm/in_process/worlds.h"
#include "comm/monitor/job_monitor.h"
#include "ir/base/error.h"
#include "tests/comm/ranks.h"

namespace heddle::comm::conformance::detection_test {
namespace {

using WorldPtr = std::unique_ptr<World>;
using Rule = Finding::Rule;

// Returns a job of idle ranks. All of them are threads of this process.
JobView idleJob(size_t ranks) {
  JobView job;
  job.deadline = 10;
  job.patience = 7;
  job.in_process.assign(ranks, true);
  job.on_machine.assign(ranks, true);
  job.locations.ranks.resize(ranks);
  job.ranks.resize(ranks);
  for (size_t rank = 0; rank < ranks; ++rank) job.ranks[rank].rank = static_cast<int>(rank);
  return job;
}

void waitInCall(RankSnapshot& rank, uint64_t call, RankTask task = RankTask::None) {
  rank.wait = RankWait::Job;
  rank.calls = call;
  rank.task = task;
}

TEST(Detection, IdleRanksAreNotReported) { EXPECT_TRUE(findFailures(idleJob(3)).empty()); }

TEST(Detection, RankThatMissesACallIsBlamedAfterThePatience) {
  JobView job = idleJob(3);
  waitInCall(job.ranks[0], 4, RankTask::ComparingPrograms);
  job.ranks[1].calls = 3;
  waitInCall(job.ranks[2], 4);
  const std::vector<Finding> found = findFailures(job);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, Rule::Stalled);
  EXPECT_EQ(found[0].blamed, 1);
  EXPECT_EQ(found[0].seconds, 7);
  EXPECT_EQ(found[0].reason(),
            "nothing has moved on any rank for 7 s, and rank 0 waits for it: rank 0 compares its "
            "program with the other ranks");
  job.ranks[0].wait = RankWait::None;
  job.ranks[0].calls = 4;
  EXPECT_EQ(
      findFailures(job)[0].reason(),
      "nothing has moved on any rank for 7 s, and rank 2 waits for it in a call of its World");
  job.patience = 0;
  EXPECT_TRUE(findFailures(job).empty());
}

// If two ranks are late, the one that does not wait itself must be blamed.
TEST(Detection, RankThatWaitsItselfIsBlamedLast) {
  JobView job = idleJob(3);
  waitInCall(job.ranks[0], 4);
  waitInCall(job.ranks[1], 3);
  job.ranks[2].calls = 3;
  EXPECT_EQ(findFailures(job)[0].blamed, 2);
  waitInCall(job.ranks[2], 4);
  EXPECT_EQ(findFailures(job)[0].blamed, 1);
}

// Rank 0 waits for the others in run 1. Rank 2 has finished this run, so rank 1 must be blamed.
TEST(Detection, RankThatNoOtherRankAwaitsIsNotBlamed) {
  JobView job = idleJob(3);
  for (RankSnapshot& rank : job.ranks) rank.run = 1;
  job.ranks[0].phase = RankPhase::Communicating;
  job.ranks[1].phase = RankPhase::Computing;
  job.ranks[2].finished = 1;
  EXPECT_EQ(findFailures(job)[0].blamed, 1);
}

TEST(Detection, EveryCallTaskAndWaitCountsAsProgress) {
  JobView job = idleJob(2);
  waitInCall(job.ranks[0], 4);
  std::vector<uint64_t> evidence = {findFailures(job)[0].evidence};
  job.ranks[1].calls = 1;
  evidence.push_back(findFailures(job)[0].evidence);
  job.ranks[1].task = RankTask::Checking;
  evidence.push_back(findFailures(job)[0].evidence);
  job.ranks[1].wait = RankWait::Some;
  evidence.push_back(findFailures(job)[0].evidence);
  for (size_t i = 1; i < evidence.size(); ++i) EXPECT_NE(evidence[i], evidence[i - 1]) << i;
}

TEST(Detection, LongWorkHasTenTimesThePatience) {
  JobView job = idleJob(2);
  waitInCall(job.ranks[0], 4);
  for (const RankTask task : {RankTask::Reading, RankTask::CompilingProgram,
                              RankTask::CopyingInputs, RankTask::TuningKernels}) {
    job.ranks[1].task = task;
    EXPECT_EQ(findFailures(job)[0].seconds, 70);
  }
  job.ranks[1].task = RankTask::CollectingOutputs;
  EXPECT_EQ(findFailures(job)[0].seconds, 7);
  job.ranks[1].phase = RankPhase::Compiling;
  EXPECT_EQ(findFailures(job)[0].seconds, 70);
  // A rank that waits in a call does no work, so it does not get more time.
  waitInCall(job.ranks[1], 3, RankTask::AgreeingOnAlgorithms);
  EXPECT_EQ(findFailures(job)[0].seconds, 7);
}

TEST(Detection, RankThatLeavesBeforeACallIsReported) {
  JobView job = idleJob(2);
  job.patience = 0;
  job.ranks[1].state = RankState::Left;
  job.ranks[1].calls = 3;
  waitInCall(job.ranks[0], 3);
  EXPECT_TRUE(findFailures(job).empty());
  waitInCall(job.ranks[0], 4);
  const std::vector<Finding> found = findFailures(job);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule, Rule::MissedCall);
  EXPECT_EQ(found[0].blamed, 1);
  // RankWait::Some: not all ranks need to make this call.
  job.ranks[0].wait = RankWait::Some;
  EXPECT_TRUE(findFailures(job).empty());
}

// Rank 0 makes a call of each kind, and rank 1 does not.
TEST(Detection, AbsentRankOfEveryCallIsReported) {
  const std::vector<std::function<void(World&)>> calls = {
      [](World& world) { world.exchange("x"); },
      [](World& world) { world.barrier(); },
      [](World& world) {
        world.communicator({0, 1});
      },
      [](World& world) {
        world.split({0, 1});
      },
  };
  for (const auto& call : calls) {
    const auto errors = runRanks(makeInProcessWorlds(2), [&](WorldPtr& world) {
      JobMonitorOptions options;
      options.patience = 0.2;
      JobMonitor monitor(*world, options);
      const World::Task task(world.get(), RankTask::CreatingCommunicators);
      if (world->rank() == 0) return call(*world);
      // Rank 1 must make no call until the failure is found. A late call would complete the call of
      // rank 0.
      while (!monitor.failed()) std::this_thread::yield();
    });
    for (const char* part : {"rank 1 is lost before its first run, while it creates communicators: "
                             "nothing has moved on any rank for 0.2 s, and rank 0 waits for it: "
                             "rank 0 creates communicators\n",
                             ": waiting, before its first run, while it creates communicators and "
                             "waits for "}) {
      EXPECT_NE(errors[0].find(part), std::string::npos) << errors[0];
    }
  }
}

TEST(Detection, SignalIsReportedWithTheTaskOfTheRank) {
  static std::atomic<int> signal{0};
  std::atomic<int> reports{0};
  JobMonitorOptions options;
  options.end_signal = &signal;
  options.on_failure = [&](const JobFailure& failure) {
    // One rank notices the signal and reports it to the other rank.
    const std::string expected =
        failure.signal != 0
            ? "told to end by signal 15 before its first run, while it checks the outputs\n"
            : " failed before its first run, while it checks the outputs: told to end by signal "
              "15\n";
    EXPECT_NE(failure.text.find(expected), std::string::npos) << failure.text;
    EXPECT_EQ(failure.rank >= 0, failure.signal == 0);
    ++reports;
  };
  const auto errors = runRanks(makeInProcessWorlds(2), [&](WorldPtr& world) {
    const World::Task task(world.get(), RankTask::Checking);
    JobMonitor monitor(*world, options);
    world->barrier();
    signal = 15;
    while (reports < 2) std::this_thread::yield();
  });
  expectAllWell(errors);
}

// A rank that leaves because of the failure can end a wait of another rank before the monitor of
// the other rank reports the failure. findFailure() must therefore return the failure at once.
TEST(Detection, FailureIsKnownBeforeTheOwnMonitorReportsIt) {
  JobMonitorOptions options;
  options.on_failure = [](const JobFailure&) {};
  const auto errors = runRanks(makeInProcessWorlds(2), [&](WorldPtr& world) {
    JobMonitor monitor(*world, options);
    EXPECT_FALSE(monitor.findFailure().has_value());
    world->barrier();
    if (world->rank() == 1) monitor.mine().state.leave(RankState::Stuck, "it waits");
    world->barrier();
    const std::optional<JobFailure> failure = monitor.findFailure();
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->code, ErrorCode::Deadlock);
    EXPECT_EQ(failure->rank, 1);
    EXPECT_NE(failure->text.find("it waits"), std::string::npos) << failure->text;
  });
  expectAllWell(errors);
}

}  // namespace
}  // namespace heddle::comm::conformance::detection_test
