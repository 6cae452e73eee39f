// Several ranks in one process.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "host/worlds.h"
#include "tests/host/executable_common.h"

namespace heddle::host::executable_ranks_cpu_test {
namespace {

using testing::deviceFloats;
using testing::floatsOf;
using testing::programOf;
using testing::userErrorOf;

// Runs body(world) on a thread a rank; returns what each threw.
template <class Body>
std::vector<std::string> onRanks(int ranks, const Body& body) {
  auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, ranks);
  std::vector<std::string> errors(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      errors[static_cast<size_t>(r)] = userErrorOf([&] { body(*worlds[static_cast<size_t>(r)]); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

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

TEST(ExecutableRanksTest, AnAllreduceOnASecondStream) {
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

TEST(ExecutableRanksTest, DifferentProgramsAreToldOnEveryRank) {
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

TEST(ExecutableRanksTest, AFailingRankTakesTheOthersDown) {
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

// In the middle of its work: the instruction fails on the device, runs of the peers have begun.
TEST(ExecutableRanksTest, ALateErrorOfOneRankReachesTheOthers) {
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

TEST(ExecutableRanksTest, AShardedInputMustBeTheRanksBlock) {
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

}  // namespace
}  // namespace heddle::host::executable_ranks_cpu_test
