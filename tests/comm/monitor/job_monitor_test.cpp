// Tests the job monitor (comm/monitor/job_monitor.h), which finds ranks that fail or stop. The
// ranks are threads. tests/mpi_losses.sh tests processes that die.
#include "comm/monitor/job_monitor.h"

#include <barrier>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stdexcept>

#include "comm/in_process/worlds.h"
#include "ir/base/error.h"
#include "tests/comm/ranks.h"

namespace heddle::comm::conformance::job_monitor_test {
namespace {

using WorldPtr = std::unique_ptr<World>;

// Records the failure that a job monitor reports. wait() has no time limit of its own: ctest ends a
// test that hangs.
class FailureRecorder {
 public:
  std::function<void(const JobFailure&)> handler() {
    return [this](const JobFailure& failure) {
      std::lock_guard lock(mutex_);
      failure_ = failure;
      changed_.notify_all();
    };
  }
  JobFailure wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failure_.has_value(); });
    return *failure_;
  }
  bool hasFailure() {
    std::lock_guard lock(mutex_);
    return failure_.has_value();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<JobFailure> failure_;
};

void expectParts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
  }
}

constexpr uint64_t kProgram = 17;
const std::vector<std::string> kInstructions = {"allocate", "launch @k", "allreduce"};

void endRun(JobMonitor& monitor) { monitor.mine().finished = monitor.mine().run.load(); }

// Calls `body` with a job monitor on each rank. The monitors exist until all calls have returned.
void onMonitors(int ranks, const JobMonitorOptions& options,
                const std::function<void(JobMonitor&, FailureRecorder&, World&)>& body,
                const std::function<std::string(int)>& machine = {}) {
  const auto errors = runRanks(makeInProcessWorlds(ranks), [&](WorldPtr& world) {
    FailureRecorder recorder;
    JobMonitorOptions mine = options;
    mine.on_failure = recorder.handler();
    if (machine) mine.machine_key = machine(world->rank());
    JobMonitor monitor(*world, mine);
    monitor.addProgram(kProgram, kInstructions);
    world->barrier();  // so that every report can name the instruction
    body(monitor, recorder, *world);
    world->barrier();
  });
  expectAllWell(errors);
}

TEST(JobMonitor, PositionsNameStateRunAndInstruction) {
  std::barrier compared(3);  // not World::barrier(): a rank that waits there is not idle
  onMonitors(3, {}, [&](JobMonitor& monitor, FailureRecorder&, World&) {
    RankStatus& mine = monitor.mine();
    if (monitor.rank() == 1) mine.phase = RankPhase::Compiling;
    if (monitor.rank() == 2) {
      mine.beginRun(kProgram, 1, true);
      mine.begin(1, false);
      mine.begin(2, true);
    }
    compared.arrive_and_wait();
    const std::string text = monitor.positions();
    expectParts(text, {"rank 0 (pid ", "idle, before its first run\n", "compiling, before run 1\n",
                       "communicating, in run 1 communicating at instruction 2 (allreduce), "
                       "computing at instruction 1 (launch @k)"});
    EXPECT_FALSE(monitor.failed());
    compared.arrive_and_wait();
  });
}

TEST(JobMonitor, FailureIsReportedWithRankInstructionAndReason) {
  onMonitors(3, {}, [](JobMonitor& monitor, FailureRecorder& recorder, World&) {
    if (monitor.rank() == 1) {
      monitor.mine().beginRun(kProgram, 1, true);
      monitor.mine().issued = 1;
      monitor.fail("out of paper");
      EXPECT_EQ(monitor.failure().rank, 1);
      EXPECT_TRUE(monitor.failure().told);
      return;
    }
    const JobFailure failure = recorder.wait();
    EXPECT_EQ(failure.rank, 1);
    EXPECT_TRUE(failure.told);
    expectParts(failure.text,
                {"rank 1 failed in run 1 at instruction 1 (launch @k): out of paper\n",
                 "\n  rank 0 (pid ", "\n  rank 1 (pid ", "\n  rank 2 (pid "});
    EXPECT_TRUE(monitor.failed());
    // Errors after the failure follow from it. fail() must not mark this rank as failed.
    monitor.fail("nobody answers");
    EXPECT_EQ(monitor.entry(monitor.rank()).state, RankState::Left);
  });
}

TEST(JobMonitor, RankThatLeavesBeforeALaterRunIsReported) {
  const auto errors = runRanks(makeInProcessWorlds(2), [&](WorldPtr& world) {
    FailureRecorder recorder;
    JobMonitorOptions options;
    options.on_failure = recorder.handler();
    std::optional<JobMonitor> monitor(std::in_place, *world, options);
    if (world->rank() == 1) {
      monitor->mine().beginRun(kProgram, 1, true);
      monitor->mine().phase = RankPhase::Done;
      monitor.reset();
    } else {
      monitor->mine().beginRun(kProgram, 1, true);
      monitor->mine().beginRun(kProgram, 1, true);
      const JobFailure failure = recorder.wait();
      EXPECT_EQ(failure.rank, 1);
      expectParts(failure.text, {"rank 1 left the job after run 1, while others need it\n"});
    }
    world->barrier();
  });
  expectAllWell(errors);
}

TEST(JobMonitor, RankThatLeavesAfterTheLastRunIsNotReported) {
  onMonitors(2, {}, [](JobMonitor& monitor, FailureRecorder& recorder, World& world) {
    monitor.mine().beginRun(kProgram, 1, true);
    monitor.mine().phase = RankPhase::Done;
    world.barrier();
    EXPECT_FALSE(recorder.hasFailure());
  });
}

// At the beginning of run 1, rank 0 waits to compare its collectives with those of rank 1. Rank 1
// has begun run 2 without comparing.
TEST(JobMonitor, RankThatSkipsTheMatchOfPostsIsReported) {
  JobMonitorOptions options;
  options.deadline = 0.5;
  onMonitors(2, options, [](JobMonitor& monitor, FailureRecorder& recorder, World&) {
    monitor.mine().beginRun(kProgram, 1, true);
    if (monitor.rank() == 0) monitor.mine().issued = kMatchingPosts;
    if (monitor.rank() == 1) monitor.mine().beginRun(kProgram, 1, true);
    expectParts(recorder.wait().text,
                {"rank 1 is lost in run 2: it has passed run 1 without comparing its posts with "
                 "rank 0; the sizes of run 1 are new for rank 0",
                 "in run 1 comparing its posts with the other ranks"});
  });
}

TEST(JobMonitor, RunWithOtherSizesIsReported) {
  onMonitors(2, {}, [](JobMonitor& monitor, FailureRecorder& recorder, World&) {
    monitor.mine().beginRun(kProgram, 100 + static_cast<uint64_t>(monitor.rank()), true);
    expectParts(recorder.wait().text,
                {"rank 1 is lost in run 1: it runs with other sizes than rank 0, or another of its "
                 "Executables\n"});
  });
}

// Runs 1 and 2 of rank 1 differ from those of the other ranks, but end before the monitor polls.
// The monitor must find them although run 3 is the same on all ranks.
TEST(JobMonitor, DifferentFinishedRunsAreReported) {
  onMonitors(3, {}, [](JobMonitor& monitor, FailureRecorder& recorder, World& world) {
    for (uint64_t plan : {1, 2, 3}) {
      monitor.mine().beginRun(kProgram, monitor.rank() == 1 && plan < 3 ? 3 - plan : plan, true);
      endRun(monitor);
    }
    world.barrier();
    if (monitor.rank() != 2) {
      EXPECT_THROW(monitor.compareRuns(), UserError);
    }
    const JobFailure failure = recorder.wait();
    EXPECT_TRUE(failure.rank == 1 || failure.rank == 2) << failure.rank;
    expectParts(failure.text, {"it executed different runs than rank"});
  });
}

TEST(JobMonitor, DifferentRunsAreReportedWhenARankLeaves) {
  const auto errors = runRanks(makeInProcessWorlds(2), [&](WorldPtr& world) {
    FailureRecorder recorder;
    JobMonitorOptions options;
    options.deadline = 1e6;  // the monitor polls every 50 ms; ranks leave before
    options.on_failure = recorder.handler();
    auto monitor = std::make_unique<JobMonitor>(*world, options);
    monitor->mine().beginRun(kProgram, static_cast<uint64_t>(monitor->rank() + 1), true);
    endRun(*monitor);
    monitor->mine().beginRun(kProgram, 3, true);
    endRun(*monitor);
    world->barrier();
    monitor.reset();
    world->barrier();
    EXPECT_TRUE(recorder.hasFailure());
  });
  expectAllWell(errors);
}

void awaitFailure(JobMonitor& monitor) {
  while (!monitor.failed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  throw UserError(monitor.failure().text);
}

TEST(JobMonitor, RankThatLeavesByAnExceptionHasFailed) {
  const auto errors = runRanks(makeInProcessWorlds(3), [&](WorldPtr& world) {
    const WorldPtr mine = std::move(world);
    JobMonitor& monitor = jobMonitorOf(*mine, {});
    EXPECT_EQ(&monitor, &jobMonitorOf(*mine, {}));
    monitor.mine().beginRun(kProgram, 1, true);
    mine->barrier();
    if (mine->rank() == 1) throw std::runtime_error("mine");
    awaitFailure(monitor);
  });
  EXPECT_EQ(errors[1], "mine");
  for (int rank : {0, 2}) {
    expectParts(errors[static_cast<size_t>(rank)],
                {"rank 1 failed in run 1", "it left the job by an exception"});
  }
}

TEST(JobMonitor, WorldFailReportsItsReason) {
  const auto errors = runRanks(makeInProcessWorlds(2), [&](WorldPtr& world) {
    JobMonitor& monitor = jobMonitorOf(*world, {});
    monitor.mine().beginRun(kProgram, 1, true);
    world->barrier();
    if (world->rank() == 1) world->fail("its reason");
    awaitFailure(monitor);
  });
  for (const std::string& error : errors) {
    expectParts(error, {"rank 1 failed in run 1", "its reason"});
  }
}

TEST(JobMonitor, StalledJobIsReportedAfterThePatienceUnlessARankCompiles) {
  JobMonitorOptions options;
  options.patience = 0.2;
  onMonitors(3, options, [](JobMonitor& monitor, FailureRecorder& recorder, World& world) {
    monitor.mine().beginRun(kProgram, 1, true);
    if (monitor.rank() == 1) {
      monitor.mine().begin(1, false);
    } else {
      monitor.mine().begin(2, true);
    }
    // Rank 2 compiles for longer than `patience`, which must not end the job.
    if (monitor.rank() == 2) monitor.mine().phase = RankPhase::Compiling;
    world.barrier();
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    EXPECT_FALSE(recorder.hasFailure());
    world.barrier();
    if (monitor.rank() == 2) monitor.mine().phase = RankPhase::Computing;
    const JobFailure failure = recorder.wait();
    EXPECT_EQ(failure.rank, 1);
    EXPECT_FALSE(failure.told);
    expectParts(failure.text, {"rank 1 is lost in run 1 computing at instruction 1 (launch @k): "
                               "nothing has moved on any rank for 0.2 s, and others wait\n"});
  });
}

// Rank 1 waits in run 1, which ranks 0 and 2 have finished. Rank 0 is between runs, rank 2 is in
// run 2.
TEST(JobMonitor, RankThatWaitsAloneIsReported) {
  JobMonitorOptions options;
  options.deadline = 0.5;
  onMonitors(3, options, [](JobMonitor& monitor, FailureRecorder& recorder, World& world) {
    RankStatus& mine = monitor.mine();
    mine.beginRun(kProgram, 1, true);
    if (monitor.rank() == 1) {
      mine.begin(2, true);
    } else {
      endRun(monitor);
      mine.phase = RankPhase::Done;
    }
    world.barrier();
    if (monitor.rank() == 2) mine.beginRun(kProgram, 1, true);
    expectParts(recorder.wait().text,
                {"rank 1 is lost in run 1 communicating at instruction 2 (allreduce): it waits "
                 "there, and ranks 0 and 2 have finished that run without posting it\n"});
  });
}

TEST(JobMonitor, RankThatOthersMayStillJoinIsNotReported) {
  JobMonitorOptions options;
  options.deadline = 0.2;
  onMonitors(3, options, [](JobMonitor& monitor, FailureRecorder& recorder, World& world) {
    RankStatus& mine = monitor.mine();
    mine.beginRun(kProgram, 1, true);
    if (monitor.rank() == 0) endRun(monitor);
    if (monitor.rank() == 1) mine.begin(2, true);
    // Rank 2 begins its second run on the host while the work of its first run has not ended.
    if (monitor.rank() == 2) mine.beginRun(kProgram, 1, true);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    world.barrier();
    EXPECT_FALSE(recorder.hasFailure()) << recorder.wait().text;
  });
}

// Ranks 1 and 2 announce that they begin no more runs (endRuns()). Rank 0 begins another run, which
// must end with an error.
TEST(JobMonitor, RankThatEndsItsRunsIsReportedInTheNextRun) {
  for (const bool unwinds : {false, true}) {
    onMonitors(3, {}, [&](JobMonitor& monitor, FailureRecorder& recorder, World&) {
      monitor.mine().beginRun(kProgram, 1, true);
      endRun(monitor);
      if (monitor.rank() != 0) return monitor.activity().endRuns(unwinds);
      monitor.mine().beginRun(kProgram, 1, true);
      const char* why = unwinds ? ": an exception has ended its" : ": it begins no more";
      expectParts(recorder.wait().text,
                  {"rank 1 is lost after its last run, 1", why, " runs, and rank 0 is in run 2"});
    });
  }
}

TEST(JobMonitor, StartLimitEndsTheWait) {
  const auto errors = runRanks(makeInProcessWorlds(2), [&](WorldPtr& world) {
    JobMonitorOptions options;
    options.start = 0.1;
    if (world->rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(800));
    JobMonitor monitor(*world, options);
  });
  for (const std::string& error : errors) {
    expectParts(error, {"rank 0 ends: the job has not started within 0.1 s: it waits for the other "
                        "ranks to create the job monitor"});
  }
}

// Returns the machine of a rank: a for ranks 0 and 1, b for 2, c for 3 and 4. TCP connects them.
std::string threeMachines(int rank) { return rank < 2 ? "a" : rank < 3 ? "b" : "c"; }

TEST(JobMonitor, StatusesReachOtherMachines) {
  onMonitors(
      5, {},
      [](JobMonitor& monitor, FailureRecorder& recorder, World& world) {
        if (monitor.rank() == 3) {
          monitor.mine().beginRun(kProgram, 1, true);
          monitor.mine().begin(2, true);
        }
        while (monitor.entry(3).communicating != 2) std::this_thread::yield();
        for (int rank = 0; rank < 5; ++rank) {
          while (monitor.entry(rank).state != RankState::Alive) std::this_thread::yield();
        }
        world.barrier();
        if (monitor.rank() == 4) return monitor.fail("out of paper");
        const JobFailure failure = recorder.wait();
        EXPECT_EQ(failure.rank, 4);
        expectParts(failure.text, {"rank 4 failed before its first run: out of paper\n",
                                   "in run 1 communicating at instruction 2 (allreduce)"});
      },
      threeMachines);
}

TEST(JobMonitor, MachineThatLeavesInGoodOrderIsNotReported) {
  JobMonitorOptions options;
  options.deadline = 0.5;
  const auto errors = runRanks(makeInProcessWorlds(3), [&](WorldPtr& world) {
    FailureRecorder recorder;
    JobMonitorOptions mine = options;
    mine.on_failure = recorder.handler();
    mine.machine_key = std::to_string(world->rank());
    std::optional<JobMonitor> monitor(std::in_place, *world, mine);
    world->barrier();
    if (world->rank() != 2) monitor.reset();
    if (world->rank() == 2) std::this_thread::sleep_for(std::chrono::seconds(1));
    EXPECT_FALSE(recorder.hasFailure());
    world->barrier();
  });
  expectAllWell(errors);
}

TEST(JobMonitor, InvalidLimitsAreRejected) {
  for (const bool deadline : {true, false}) {
    const auto errors = runRanks(makeInProcessWorlds(1), [&](WorldPtr& world) {
      JobMonitorOptions options;
      (deadline ? options.deadline : options.patience) = -1;
      JobMonitor monitor(*world, options);
    });
    expectParts(errors[0], {deadline ? "a deadline of -1 seconds" : "a patience of -1 seconds"});
  }
}

}  // namespace
}  // namespace heddle::comm::conformance::job_monitor_test
