// Injects faults into jobs whose ranks are threads. Checks the errors that a C++ program gets on
// the surviving ranks, and that the next job works.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>

#include "host/device/cpu/cpu_device.h"
#include "host/device/null/null_device.h"
#include "host/run/match_collectives_across_ranks.h"
#include "host/tensor.h"
#include "host/text/program_text.h"
#include "tests/host/executable_common.h"
#include "tests/host/rank_harness.h"

namespace heddle::host::job_faults_cpu_test {
namespace {

using testing::argumentsOf;
using testing::HarnessOptions;
using testing::programOf;

// Instruction 1 is the copy, instruction 5 the allreduce, and instruction 6 the wait.
const char* const kSum = R"(
mesh @m = [x=ranks]
program sum(%x: f32[n]) -> (%y) with n = 64 {
  slot %a: f32[n]
  slot %y: f32[n]
  %a = allocate stream=0
  copy %x -> %a stream=0
  %y = allocate stream=0
  !e = record_event stream=0
  wait_event !e stream=1
  $t = communicate allreduce %a -> %y team=@m[x] op=sum stream=1
  wait $t stream=0
  free %a stream=0
}
)";

struct JobEnd {
  std::vector<std::string> errors;  // one per rank
  std::vector<HostTensor> results;
};

// Each rank creates an Executable with the fault and runs it once. Returns the errors by rank.
JobEnd runJob(int ranks, const std::optional<InjectedFault>& fault,
              comm::JobMonitorOptions monitor_options = {},
              const std::function<void(int)>& before = {}) {
  HarnessOptions options;
  options.ranks = ranks;
  options.sizes = {{"n", 64}};
  auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, ranks);
  JobEnd end;
  end.errors.resize(static_cast<size_t>(ranks));
  end.results.resize(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
        ExecutableOptions executable_options;
        executable_options.inject = fault;
        const auto at = static_cast<size_t>(rank);
        Context context{device.get(), worlds[at].get()};
        context.monitor_options = monitor_options;
        Executable executable(programOf(kSum), context, executable_options);
        const auto arguments = argumentsOf(executable.program(), *device, rank, options);
        if (before) before(rank);
        const Outputs outputs = executable.run(arguments);
        outputs.wait();
        end.results[at] = toHost(*device, std::get<Tensor>(outputs[0]));
        worlds[at]->barrier();
      } catch (const UserError& error) {
        end.errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return end;
}

void expectParts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
  }
}

TEST(JobFaults, ThrowEndsAllRanks) {
  for (const char* kind : {"throw", "die"}) {
    const JobEnd end = runJob(3, parseFault(std::string("rank=1,instr=1,") + kind));
    expectParts(end.errors[1],
                {"instruction 1 (copy %x -> %a stream=0): injected: " + std::string(kind)});
    for (int rank : {0, 2}) {
      expectParts(end.errors[static_cast<size_t>(rank)],
                  {"rank 1", "instruction 1 (copy %x -> %a stream=0): injected: "});
    }
    EXPECT_EQ(runJob(3, std::nullopt).errors, std::vector<std::string>(3)) << "the next job";
  }
}

TEST(JobFaults, StallIsReportedWhenNothingMoves) {
  comm::JobMonitorOptions monitor_options;
  monitor_options.patience = 0.3;
  const JobEnd end = runJob(3, parseFault("rank=2,instr=1,stall"), monitor_options);
  expectParts(end.errors[2], {"injected: stall, ended because the job has failed"});
  for (int rank : {0, 1}) {
    expectParts(end.errors[static_cast<size_t>(rank)],
                {"rank 2 is lost in run 1 computing at instruction 1 (copy %x -> %a stream=0)",
                 "nothing has moved on any rank for 0.3 s, and others wait", "rank 2 (pid "});
  }
}

TEST(JobFaults, DelayFailsNoRank) {
  comm::JobMonitorOptions monitor_options;
  monitor_options.deadline = 0.2;
  const JobEnd end = runJob(3, parseFault("rank=0,instr=5,delay=0.5s"), monitor_options);
  EXPECT_EQ(end.errors, std::vector<std::string>(3));
}

// Wraps a World whose ranks are threads, and claims that its transport is NCCL. NCCL does not check
// that the ranks post the same collectives, so heddle compares them before a run. `meetings` counts
// these comparisons.
class UncheckedWorld : public comm::World {
 public:
  explicit UncheckedWorld(comm::World& world) : world_(world) {}
  ~UncheckedWorld() override { closeMonitor(); }
  using World::split;
  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  std::string transport() const override { return "nccl"; }
  std::vector<std::string> exchange(const std::string& mine) override {
    ++meetings;
    return world_.exchange(mine);
  }
  std::unique_ptr<comm::Communicator> communicator(const std::vector<int>& members) override {
    return world_.communicator(members);
  }
  void abort(const std::string& reason) noexcept override { world_.abort(reason); }
  std::string fault() const override { return world_.fault(); }

  int meetings = 0;

 private:
  comm::World& world_;
};

// Runs the function for each rank on its own thread and device. Returns the errors by rank.
std::vector<std::string> errorsOfRanks(
    int ranks, const std::function<void(int rank, comm::World& world, Device& device)>& body) {
  auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, ranks);
  std::vector<std::string> errors(worlds.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto at = static_cast<size_t>(rank);
      const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
      errors[at] = testing::userErrorOf([&] { body(rank, *worlds[at], *device); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// Runs kSum on each rank with the sizes of that rank, one after the other. Returns the errors by
// rank.
std::vector<std::string> runSizes(const std::vector<std::vector<int64_t>>& sizes_by_rank,
                                  int* meetings = nullptr,
                                  comm::JobMonitorOptions monitor_options = {},
                                  const char* program = kSum) {
  const auto run = [&](int rank, comm::World& threads, Device& device) {
    UncheckedWorld world(threads);
    Context context{&device, &world};
    context.monitor_options = monitor_options;
    Executable executable(programOf(program), context);
    const int before = world.meetings;
    for (int64_t n : sizes_by_rank[static_cast<size_t>(rank)]) {
      const std::vector<float> ones(static_cast<size_t>(n), 1);
      executable.run({testing::deviceFloats(device, ones, {n})}).wait();
    }
    if (rank == 0 && meetings != nullptr) *meetings = world.meetings - before;
    world.barrier();
  };
  return errorsOfRanks(static_cast<int>(sizes_by_rank.size()), run);
}

TEST(JobFaults, DifferentCountsAreReportedBeforeThePost) {
  const std::string sum =
      "instruction 5 ($t = communicate allreduce %a -> %y team=@m[x] op=sum stream=1): ";
  const auto errors = runSizes({{64}, {128}});
  expectParts(errors[0], {sum + "rank 0 posts allreduce(sum) of 64 f32 where rank 1 posts "
                                "allreduce(sum) of 128 f32"});
  expectParts(errors[1], {sum + "rank 1 posts allreduce(sum) of 128 f32 where rank 0 posts "
                                "allreduce(sum) of 64 f32"});
}

// Two ranks must post the same collectives in the same order. Different instructions may post them.
TEST(JobFaults, PostsOfDifferentInstructionsMatchInOrder) {
  const auto errors = runSizes({{4}, {4}}, nullptr, {}, R"(
mesh @m = [x=ranks]
program ways(%x: f32[n]) -> (%y) with n = 4 {
  slot %y: f32[n]
  %y = allocate stream=0
  copy %x -> %y stream=0
  if rank == 0 {
    for i in 0 .. 2 {
      $t = send %x to=1 team=@m stream=0
      wait $t stream=0
    }
    $t = communicate broadcast %x -> %y team=@m root=0 stream=0
    wait $t stream=0
  } else {
    $t = recv %y from=0 team=@m stream=0
    wait $t stream=0
    $t = recv %y from=0 team=@m stream=0
    wait $t stream=0
    $t = communicate broadcast %x -> %y team=@m root=0 stream=0
    wait $t stream=0
  }
}
)");
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST(JobFaults, ComparedSizesAreNotComparedAgain) {
  int meetings = 0;
  const auto errors = runSizes({{64, 64, 128, 64, 128, 64}, {64, 64, 128, 64, 128, 64}}, &meetings);
  EXPECT_EQ(errors, std::vector<std::string>(2));
  EXPECT_EQ(meetings, 2);
}

// Ranks compare their collectives only in runs with new sizes. Both ranks must do so in the same
// runs, or one would wait forever. A rank that has kept its plans (rank 0) must not skip a
// comparison, even after the list of compared sizes was full and was cleared.
TEST(JobFaults, AllRanksCompareInTheSameRuns) {
  const std::vector<uint64_t> sizes = {1, 2, 1, 3, 1, 3, 2, 2, 1};
  std::vector<std::vector<int>> meetings(2);
  const auto errors = errorsOfRanks(2, [&](int rank, comm::World& threads, Device&) {
    UncheckedWorld world(threads);
    const auto device = makeNullDevice();
    RunResources resources(*device, {}, nullptr);
    CrossRankMatcher agreement(&world, true, 2);
    std::map<uint64_t, Plan> kept;
    for (uint64_t hash : sizes) {
      Plan fresh;
      Plan& plan = rank == 0 ? kept[hash] : fresh;
      plan.sizes_hash = hash;
      agreement.agree(plan, resources);
      meetings[static_cast<size_t>(rank)].push_back(world.meetings);
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  // The list of compared sizes holds two sizes. The first 3 clears it, so the next 1 is compared
  // again. The 2 after that clears it a second time.
  EXPECT_EQ(meetings[0], (std::vector<int>{1, 2, 2, 3, 4, 4, 5, 5, 6}));
  EXPECT_EQ(meetings[1], meetings[0]);
}

// In its second run, rank 1 has sizes that were compared before, so it compares nothing. Rank 0 has
// new sizes and waits for the comparison.
TEST(JobFaults, RankThatComparesAloneIsReleased) {
  comm::JobMonitorOptions monitor_options;
  monitor_options.deadline = 1;
  const auto errors = runSizes({{64, 128}, {64, 64}}, nullptr, monitor_options);
  for (const std::string& error : errors) {
    expectParts(error, {"rank 1 is lost in run 2", "it runs with other sizes than rank 0",
                        "in run 2 comparing its posts with the other ranks"});
  }
}

// The rank that posts last detects the difference.
TEST(JobFaults, MismatchedAllToAllVListsAreReported) {
  const char* const text = R"(
mesh @m = [x=2]
program p(%x: f32[8], %s: i64[2], %r: i64[2]) -> (%y) {
  slot %y: f32[8]
  slot %sends: list i64[2]
  slot %receives: list i64[2]
  %sends = read_back %s
  %receives = read_back %r
  %y = allocate
  $t = communicate all_to_all_v %x -> %y team=@m[x] send_counts=%sends recv_counts=%receives
  wait $t
}
)";
  const auto countsOf = [](Device& device, int64_t a, int64_t b) {
    HostTensor host(DType::I64, {2});
    host.as<int64_t>()[0] = a;
    host.as<int64_t>()[1] = b;
    return toDevice(device, device.allocator(), host, denseDesc(DType::I64, {2}));
  };
  const auto errors = errorsOfRanks(2, [&](int rank, comm::World& world, Device& device) {
    const Tensor x = testing::deviceFloats(device, std::vector<float>(8, 1), {8});
    Executable executable(programOf(text), {&device, &world});
    const Tensor s = rank == 0 ? countsOf(device, 1, 5) : countsOf(device, 3, 0);
    const Tensor good = rank == 0 ? countsOf(device, 1, 3) : countsOf(device, 5, 0);
    executable.run({x, s, good}).wait();
    const Tensor bad = rank == 0 ? countsOf(device, 1, 3) : countsOf(device, 4, 0);
    executable.run({x, s, bad}).wait();
  });
  for (const std::string& error : errors) {
    expectParts(error, {"instruction 3 (", "all_to_all_v",
                        "rank 0 sends 5 elements to rank 1, "
                        "which expects 4 from it"});
  }
}

TEST(JobFaults, CorruptionChangesTheResultOnEveryRank) {
  const JobEnd right = runJob(2, std::nullopt);
  const JobEnd wrong = runJob(2, parseFault("rank=1,instr=1,corrupt"));
  EXPECT_EQ(wrong.errors, std::vector<std::string>(2));
  for (size_t rank : {size_t{0}, size_t{1}}) {
    int differ = 0;
    for (int64_t i = 0; i < 64; ++i) {
      differ += right.results[rank].at(i) != wrong.results[rank].at(i) ? 1 : 0;
    }
    EXPECT_EQ(differ, 64);
  }
}

TEST(JobFaults, ImpossibleFaultsAreReported) {
  const auto errorOf = [](const char* spec) { return runJob(2, parseFault(spec)).errors[1]; };
  EXPECT_EQ(errorOf("rank=1,instr=99,die"),
            "--inject: there is no instruction 99, the program has 8");
  expectParts(errorOf("rank=1,instr=6,corrupt"),
              {"--inject: instruction 6 (wait $t stream=0) writes nothing on rank 1"});
}

TEST(JobFaults, SlowRankIsWaitedFor) {
  comm::JobMonitorOptions monitor_options;
  monitor_options.deadline = 0.2;
  monitor_options.patience = 0;
  const JobEnd end = runJob(2, std::nullopt, monitor_options, [](int rank) {
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(600));
  });
  EXPECT_EQ(end.errors, std::vector<std::string>(2));
}

// The error appears on one rank only, and only when the device executes the work.
TEST(JobFaults, LateErrorReachesTheWaitOfOtherRanks) {
  const char* const text = R"(
mesh @m = [x=ranks]
program sum(%x: f32[n]) -> (%y) with n = 4 {
  slot %y: f32[n]
  check %x stream=0
  %y = allocate stream=0
  $t = communicate allreduce %x -> %y team=@m[x] op=sum stream=0
  wait $t stream=0
}
)";
  const auto errors = errorsOfRanks(2, [&](int rank, comm::World& world, Device& device) {
    const float value = rank == 1 ? std::numeric_limits<float>::quiet_NaN() : 1.0f;
    const Tensor x = testing::deviceFloats(device, {1, value, 1, 1}, {4});
    Executable executable(programOf(text), {&device, &world});
    executable.run({x}).wait();
  });
  expectParts(errors[1], {"instruction 0 (check %x stream=0): %x holds nan"});
  expectParts(errors[0], {"rank 1", "%x holds nan"});
}

}  // namespace
}  // namespace heddle::host::job_faults_cpu_test
