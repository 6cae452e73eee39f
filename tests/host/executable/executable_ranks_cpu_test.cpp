// Tests runs of several ranks in one process.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <climits>
#include <cmath>
#include <thread>

#include "comm/monitor/job_monitor.h"
#include "host/device/cpu/cpu_device.h"
#include "host/device/null/null_device.h"
#include "host/executable_parts.h"
#include "host/tensor.h"
#include "tests/host/executable_common.h"
#include "tests/host/on_ranks.h"

namespace heddle::host::executable_ranks_cpu_test {
namespace {

using testing::deviceFloats;
using testing::floatsOf;
using testing::onRanks;
using testing::programOf;
using testing::userErrorOf;

const char* const kAllreduce = R"(
mesh @m = [x=ranks]
program p(%x: f32[n]) -> (%y) with n = 4 {
  slot %y: f32[n]
  %y = allocate stream=0
  !ready = record_event stream=0
  wait_event !ready stream=1
  $t = communicate allreduce %x -> %y team=@m[x] op=sum stream=1
  wait $t stream=0
}
)";

TEST(ExecutableRanks, AllreduceOnASecondStreamIsRight) {
  const auto errors = onRanks(3, [](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    Executable executable(programOf(kAllreduce), {device.get(), &world, nullptr});
    for (int i = 0; i < 5; ++i) {
      const auto rank = static_cast<float>(world.rank());
      const Tensor x = deviceFloats(*device, {rank, 1, 2 * rank, static_cast<float>(i)}, {4});
      const Outputs outputs = executable.run({x});
      outputs.wait();
      EXPECT_EQ(floatsOf(*device, outputs[0]),
                (std::vector<float>{3, 3, 6, 3.0f * static_cast<float>(i)}));
    }
    world.barrier();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST(ExecutableRanks, DifferentProgramsAreReportedOnEveryRank) {
  const auto errors = onRanks(3, [](comm::World& world) {
    const auto device = makeNullDevice();
    std::string text = "program p(%x: f32[n]) -> (%s) {\n  slot %s: i64\n  %s = evaluate n + ";
    text += world.rank() == 2 ? "9\n}\n" : "1\n}\n";
    Executable executable(programOf(text), {device.get(), &world, nullptr});
  });
  for (const std::string& error : errors) {
    EXPECT_EQ(error,
              "the ranks run different programs; the first difference is in line 4:\n"
              "  rank 0:   %s = evaluate n + 1\n  rank 2:   %s = evaluate n + 9");
  }
}

TEST(ExecutableRanks, FailingRankEndsTheOtherRanks) {
  const auto errors = onRanks(2, [](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    Executable executable(programOf(kAllreduce), {device.get(), &world, nullptr});
    const Tensor x = deviceFloats(*device, {1, 2, 3, 4}, {4});
    if (world.rank() == 1) {
      executable.run({Scalar(1.0)});
    } else {
      executable.run({x}).wait();
    }
  });
  EXPECT_NE(errors[1].find("%x"), std::string::npos) << errors[1];
  EXPECT_NE(errors[0].find("rank 1"), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("%x"), std::string::npos) << errors[0];
}

// An instruction fails on the device of one rank after the other ranks have begun their runs.
TEST(ExecutableRanks, LateErrorReachesTheOtherRanks) {
  const char* const text = R"(
mesh @m = [x=ranks]
program p(%x: f32[n]) -> (%y) with n = 4 {
  slot %y: f32[n]
  %y = allocate stream=0
  check %x stream=0
  $t = communicate allreduce %x -> %y team=@m[x] op=sum stream=0
  wait $t stream=0
}
)";
  const auto errors = onRanks(3, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    Executable executable(programOf(text), {device.get(), &world, nullptr});
    for (int i = 0; i < 6; ++i) {
      const float bad = world.rank() == 1 && i == 3 ? NAN : 1.0f;
      executable.run({deviceFloats(*device, {1, bad}, {2})}).wait();
    }
  });
  const std::string reason = "instruction 1 (check %x stream=0): %x holds nan at element 1 of [2]";
  EXPECT_EQ(errors[1], reason);
  for (const size_t rank : {0, 2}) {
    EXPECT_NE(errors[rank].find("instruction 2 ($t = communicate allreduce"), std::string::npos)
        << errors[rank];
    EXPECT_NE(errors[rank].find("rank 1"), std::string::npos) << errors[rank];
    EXPECT_NE(errors[rank].find(reason), std::string::npos) << errors[rank];
  }
}

TEST(ExecutableRanks, ShardedInputMustBeTheBlockOfTheRank) {
  const char* const text = R"(
mesh @m = [x=ranks]
program p(%x: f32[n] shard(@m, 0: x)) -> (%x) with n = 4 {
}
)";
  const auto errors = onRanks(2, [&](comm::World& world) {
    const auto device = makeNullDevice();
    Executable executable(programOf(text), {device.get(), &world, nullptr});
    const TensorDesc desc =
        inputDesc(executable.program(), 0, {{"n", 5}}, world.rank(), world.size());
    EXPECT_EQ(desc.sizes[0], world.rank() == 0 ? 3 : 2);
    const Tensor right{&world, desc, nullptr};
    const Outputs outputs = executable.run({right});
    EXPECT_EQ(std::get<Tensor>(outputs[0]).desc, desc);
    EXPECT_EQ(outputDesc(executable.program(), 0, {{"n", 5}}, world.rank(), world.size()), desc);
    world.barrier();
    Tensor wrong = testing::nullTensor({4});
    wrong.desc.global = {5};
    executable.run({wrong});
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("%x"), std::string::npos) << error;
  }
}

// The collective sends as many elements as the input has in memory. If one rank had padding, the
// counts of the ranks would differ and the other ranks would wait.
TEST(ExecutableRanks, PaddedInputOfACollectiveIsRefused) {
  const char* const text = R"(
mesh @m = [x=2]
program p(%x: f32[n]) -> (%x) with n = 4 {
  $t = communicate allreduce %x -> %x team=@m[x] op=sum stream=0
  wait $t stream=0
}
)";
  const auto errors = onRanks(2, [&](comm::World& world) {
    const auto device = makeNullDevice();
    Executable executable(programOf(text), {device.get(), &world, nullptr});
    Tensor x = testing::nullTensor({6});
    executable.run({x});
    world.barrier();
    x.desc.alloc = {8};
    executable.run({x});
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("instruction 0 `$t = communicate allreduce %x -> %x team=@m[x] op=sum "
                         "stream=0`: input %x is itself sent or received, so it must be allocated "
                         "as inputDesc() says: [6] with strides [1], got [8] with [1]"),
              std::string::npos)
        << error;
  }
}

// --- Two Executables on one job monitor ---

Tensor deviceCounts(Device& device, int64_t a, int64_t b) {
  HostTensor host(DType::I64, {2});
  host.as<int64_t>()[0] = a;
  host.as<int64_t>()[1] = b;
  return toDevice(device, device.allocator(), host, denseDesc(DType::I64, {2}));
}

// On rank 0, a second thread calls run() while the first run waits for rank 1. The second run must
// wait until the first one has ended, because rank 1 executes the runs one after the other. Each
// run has its own counts.
TEST(ExecutableRanks, RunsOnOneMonitorAreSerialized) {
  const char* const text = R"(
mesh @m = [x=2]
program p(%x: f32[8], %s: i64[2], %r: i64[2]) -> (%y) {
  slot %y: f32[8]
  slot %sum: f32[8]
  slot %sends: list i64[2]
  slot %receives: list i64[2]
  %sum = allocate
  $t = communicate allreduce %x -> %sum team=@m[x] op=sum
  wait $t
  %sends = read_back %s
  %receives = read_back %r
  free %sum
  %y = allocate
  $u = communicate all_to_all_v %x -> %y team=@m[x] send_counts=%sends recv_counts=%receives
  wait $u
}
)";
  const auto errors = onRanks(2, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 2, .adversarial_seed = {}});
    comm::JobMonitor monitor(world);
    const Context context{device.get(), &world, nullptr};
    ExecutableParts parts;
    parts.monitor = &monitor;
    Executable first = parts.make(programOf(text), context);
    Executable second = parts.make(programOf(text), context);
    const int rank = world.rank();
    const auto awaitRun = [&](int64_t number, int turns) {
      for (int i = 0; i < turns && monitor.entry(0).run < number && !monitor.failed(); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    };
    // Both ranks send `to_0` elements to rank 0 and `to_1` elements to rank 1.
    const auto runWith = [&](Executable& executable, int64_t to_0, int64_t to_1) {
      const Tensor x = deviceFloats(*device, testing::ramp(8, 10.0f * rank, 1), {8});
      const int64_t mine = rank == 0 ? to_0 : to_1;
      const Outputs outputs =
          executable.run({x, deviceCounts(*device, to_0, to_1), deviceCounts(*device, mine, mine)});
      outputs.wait();
      const auto got = floatsOf(*device, outputs[0]);
      const auto begin = static_cast<float>(rank == 0 ? 0 : to_0);
      for (int64_t i = 0; i < 2 * mine; ++i) {
        const int64_t in_part = i % mine;
        const float from = i < mine ? 0.0f : 10.0f;
        EXPECT_EQ(got[static_cast<size_t>(i)], from + begin + static_cast<float>(in_part));
      }
    };
    if (rank == 0) {
      std::string other;
      std::thread thread([&] {
        awaitRun(1, INT_MAX);
        other = userErrorOf([&] { runWith(second, 1, 3); });
      });
      const std::string mine = userErrorOf([&] { runWith(first, 4, 2); });
      thread.join();
      EXPECT_EQ(mine + other, "");
    } else {
      awaitRun(2, 100);  // the second run must not start yet
      runWith(first, 4, 2);
      runWith(second, 1, 3);
    }
    world.barrier();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

// Each rank creates two Executables of the same program. Rank 0 runs the first one and rank 1 the
// second one, which must be an error.
TEST(ExecutableRanks, DifferentRunOrdersAreReported) {
  const auto errors = onRanks(2, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    Context context{device.get(), &world};
    Executable first(programOf(kAllreduce), context), second(programOf(kAllreduce), context);
    (world.rank() == 0 ? first : second).run({deviceFloats(*device, {1, 2}, {2})}).wait();
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("rank 1 is lost in run 1"), std::string::npos) << error;
    EXPECT_NE(error.find("than rank 0, or another of its Executables"), std::string::npos) << error;
  }
}

// Rank 1 runs with other sizes for some runs, but each of these runs ends before the job monitor
// polls. The difference must still be reported.
TEST(ExecutableRanks, DifferentSizesAreReportedAfterTheRuns) {
  const char* const text = R"(
mesh @m = [x=3]
program p(%x: f32[n], %c: f32[2]) -> (%y) {
  slot %y: f32[2]
  %y = allocate
  $t = communicate allreduce %c -> %y team=@m[x] op=sum
  wait $t
}
)";
  std::array<int, 3> good{};
  const auto errors = onRanks(3, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    Executable executable(programOf(text), {device.get(), &world});
    const Tensor c = deviceFloats(*device, {1, 2}, {2});
    const auto run = [&](int64_t n) {
      executable.run({deviceFloats(*device, testing::ramp(n, 0, 1), {n}), c}).wait();
    };
    for (int64_t n : {4, 6, 4, 6}) run(n);
    for (int64_t n : {4, 6, 5, 5, 5, 5}) {
      run(world.rank() == 1 && n != 5 ? 10 - n : n);
      ++good[static_cast<size_t>(world.rank())];
    }
  });
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_NE(errors[rank].find("other"), std::string::npos) << errors[rank];
    EXPECT_NE(errors[rank].find("than rank 0"), std::string::npos) << errors[rank];
    EXPECT_LT(good[rank], 3);
  }
}

// Executables are destroyed and created again. In between, rank 0 has no Executable, but rank 1
// keeps one.
TEST(ExecutableRanks, MonitorOfAWorldOutlivesItsExecutables) {
  const auto errors = onRanks(2, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    const Context context{device.get(), &world};
    std::unique_ptr<Executable> kept;
    for (int turn = 0; turn < 3; ++turn) {
      auto executable = std::make_unique<Executable>(programOf(kAllreduce), context);
      executable->run({deviceFloats(*device, {1, 2}, {2})}).wait();
      if (world.rank() == 1) kept = std::move(executable);
    }
    world.barrier();
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
}

// Rank 1 leaves after its first run. Rank 0 must report this in its second run, although its first
// run has completed.
TEST(ExecutableRanks, RankThatLeavesIsReportedInUnfinishedRuns) {
  const auto errors = onRanks(2, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    const Context context{device.get(), &world};
    Executable first(programOf(kAllreduce), context), second(programOf(kAllreduce), context);
    const Tensor x = deviceFloats(*device, {1, 2}, {2});
    const Outputs one = first.run({x});
    if (world.rank() == 1) return one.wait();
    const Outputs two = second.run({x});
    one.wait();
    EXPECT_TRUE(comm::jobMonitorOf(world, {}).entry(0).isInRun());
    two.wait();
  });
  EXPECT_EQ(errors[1], "");
  EXPECT_NE(errors[0].find("rank 1"), std::string::npos) << errors[0];
}

// Rank 2 has no work in these runs, so they may end in any order.
TEST(ExecutableRanks, RunsOfAnUninvolvedRankEndInAnyOrder) {
  const char* const text = R"(
mesh @m = [x=2] ranks=[0, 1]
program p(%x: f32[2]) -> (%y) {
  slot %y: f32[2]
  %y = allocate
  on @m: $t = communicate allreduce %x -> %y team=@m[x] op=sum
  on @m: wait $t
}
)";
  const auto errors = onRanks(3, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    Executable executable(programOf(text), {device.get(), &world});
    const Tensor x = deviceFloats(*device, {1, 2}, {2});
    for (int turn = 1; turn <= 3; ++turn) {
      const Outputs one = executable.run({x}), two = executable.run({x});
      two.wait();
      one.wait();
      const comm::RankSnapshot entry = comm::jobMonitorOf(world, {}).entry(world.rank());
      EXPECT_EQ(entry.phase, comm::RankPhase::Done);
      EXPECT_EQ(entry.finished, 2 * turn);
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

// An exception during a run must end the job. Otherwise the destructor of the Executable would wait
// for the other ranks, and the other ranks would wait for this rank.
TEST(ExecutableRanks, ExceptionDuringARunEndsTheJob) {
  const auto errors = onRanks(2, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    Executable executable(programOf(kAllreduce), {device.get(), &world});
    const Tensor x = deviceFloats(*device, {1, 2}, {2});
    if (world.rank() == 0) world.barrier();
    const Outputs outputs = executable.run({x});
    if (world.rank() == 1) throw UserError("out of paper");
    outputs.wait();
  });
  EXPECT_EQ(errors[1], "out of paper");
  EXPECT_NE(errors[0].find("an exception unwound its Executable"), std::string::npos) << errors[0];
}

// The error occurs before the job monitor exists.
TEST(ExecutableRanks, FailedConstructorIsReportedOnEveryRank) {
  const auto errors = onRanks(2, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    Executable executable(programOf(kAllreduce),
                          {world.rank() == 1 ? nullptr : device.get(), &world});
  });
  EXPECT_EQ(errors[1], "an Executable needs a device");
  EXPECT_NE(errors[0].find("an Executable needs a device"), std::string::npos) << errors[0];
}

}  // namespace
}  // namespace heddle::host::executable_ranks_cpu_test
