// Tests scalars that decide only where a slice begins. All steps of a loop over a cache then share
// a plan.
#include <gtest/gtest.h>

#include <algorithm>

#include "host/compile.h"
#include "host/device/cpu/cpu_device.h"
#include "host/text/program_text.h"
#include "tests/host/on_ranks.h"
#include "tests/host/sizes/late_scalars.h"

namespace heddle::host::late_scalars_cpu_test {
namespace {

using late_scalars::fusionOf;
using late_scalars::integer;
using testing::deviceFloats;
using testing::floatsOf;
using testing::programOf;
using testing::ramp;
using testing::userErrorOf;

TEST(LateScalars, StepsOverACacheShareAPlan) {
  for (const std::optional<uint64_t> seed :
       {std::optional<uint64_t>(), std::optional<uint64_t>(3)}) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = seed});
    late_scalars::expectStepsShareAPlan(*device);
    late_scalars::expectMovedRowsShareAPlan(*device);
    late_scalars::expectTensorsOnTheHostShareAPlan(*device);
    late_scalars::expectShiftsShareAPlan(*device);
  }
}

// The extent of %head depends on %i, so each value needs a plan.
TEST(LateScalars, SizesNeedPlans) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  FusionExecutor executor(fusionOf("fusion f(%x: f32[t], %i: i64) {\n"
                                   "  %a = slice(%x, starts=[%i], stops=[%i + 2])\n"
                                   "  %head = slice(%x, starts=[0], stops=[%i])\n"
                                   "  return %a, %head\n}\n"),
                          {device.get()});
  const Tensor x = deviceFloats(*device, ramp(8, 0, 1), {8});
  for (const int64_t i : {1, 2, 1}) {
    const Outputs outputs = executor.run({x, integer(i)});
    EXPECT_EQ(floatsOf(*device, outputs[0]), ramp(2, static_cast<float>(i), 1));
    EXPECT_EQ(floatsOf(*device, outputs[1]), ramp(static_cast<size_t>(i), 0, 1));
  }
  EXPECT_EQ(executor.stats().plans, 2);
}

// The fusion reads a window of %x. A new length needs a new plan, and a new position does not.
TEST(LateScalars, WindowOfOneLengthNeedsOnePlan) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  FusionExecutor executor(fusionOf("fusion f(%x: f32[t], %i: i64, %length: i64) {\n"
                                   "  %a = slice(%x, starts=[%i], stops=[%i + %length])\n"
                                   "  %y = neg(%a)\n  return %y\n}\n"),
                          {device.get()});
  const Tensor x = deviceFloats(*device, ramp(9, 0, 1), {9});
  for (const auto& [i, length] : {std::pair{1, 2}, {7, 2}, {0, 5}, {4, 5}, {3, 2}}) {
    const Outputs outputs = executor.run({x, integer(i), integer(length)});
    outputs.wait();
    EXPECT_EQ(floatsOf(*device, outputs[0]),
              ramp(static_cast<size_t>(length), -static_cast<float>(i), -1));
  }
  EXPECT_EQ(executor.stats().plans, 2);
  EXPECT_NE(userErrorOf([&] { executor.run({x, integer(5), integer(5)}); }), "");
}

// The start is a multiple of %i, and a view of the slice is permuted and sliced again.
TEST(LateScalars, OffsetsOfNestedSlicesAdd) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  FusionExecutor executor(fusionOf("fusion f(%x: f32[t, u], %i: i64, %j: i64) {\n"
                                   "  %a = slice(%x, starts=[2*%i, 0], stops=[2*%i + 2, u])\n"
                                   "  %b = permute(%a, axes=[1, 0])\n"
                                   "  %c = slice(%b, starts=[u - %j, 0], stops=[u - %j + 1, 2])\n"
                                   "  %y = neg(%c)\n  return %y\n}\n"),
                          {device.get()});
  const Tensor x = deviceFloats(*device, ramp(24, 0, 1), {6, 4});
  for (const auto& [i, j] : {std::pair{0, 1}, {2, 4}, {1, 3}, {2, 1}}) {
    const float first = static_cast<float>(8 * i + 4 - j);
    const Outputs outputs = executor.run({x, integer(i), integer(j)});
    outputs.wait();
    EXPECT_EQ(floatsOf(*device, outputs[0]), (std::vector<float>{-first, -first - 4}));
  }
  EXPECT_EQ(executor.stats().plans, 1);
  EXPECT_NE(userErrorOf([&] { executor.run({x, integer(3), integer(1)}); }), "");
  EXPECT_NE(userErrorOf([&] { executor.run({x, integer(0), integer(5)}); }), "");
}

// The program has no guard. The slice itself limits %i.
TEST(LateScalars, HostProgramWritesOneRowPerStep) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  Executable executable(programOf(
                            R"(program p(%cache: f32[t, 2], %new: f32[1, 2], %i: i64) -> (%cache) {
  slot %row: f32[1, 2]
  %row = alias %cache slice starts=[%i, 0] stops=[%i + 1, 2]
  copy %new -> %row stream=0
}
)"),
                        {device.get()});
  const Tensor cache = deviceFloats(*device, ramp(8, 0, 0), {4, 2});
  for (int64_t i = 0; i < 4; ++i) {
    const auto value = static_cast<float>(i);
    executable.run({cache, deviceFloats(*device, {value, value}, {1, 2}), integer(i)}).wait();
  }
  EXPECT_EQ(floatsOf(*device, cache), (std::vector<float>{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(executable.stats().plans, 1);
  const Tensor row = deviceFloats(*device, {7, 7}, {1, 2});
  EXPECT_NE(userErrorOf([&] {
              executable.run({cache, row, integer(4)});
            }).find("slice 4 .. 5"),
            std::string::npos);
}

// The cache is computed in the run, and its row is also an output and an operand of a kernel.
TEST(LateScalars, RowsOfUnalignedOutputsAreRead) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  late_scalars::expectRowsOfUnalignedOutputsAreRead(*device);
}

TEST(LateScalars, SlicesOfComputedTensorsShareAPlan) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 5});
  FusionExecutor executor(fusionOf("fusion f(%x: f32[t, 2], %w: f32[2, 2], %i: i64) {\n"
                                   "  %cache = mul(%x, 2.0)\n"
                                   "  %row = slice(%cache, starts=[%i, 0], stops=[%i + 1, 2])\n"
                                   "  %y = neg(%row)\n  %p = matmul(%row, %w)\n"
                                   "  return %cache, %y, %p, %row\n}\n"),
                          {device.get()});
  const Tensor x = deviceFloats(*device, ramp(12, 0, 1), {6, 2});
  const Tensor w = deviceFloats(*device, {1, 0, 1, 1}, {2, 2});
  for (const int64_t i : {2, 0, 5, 3}) {
    const Outputs outputs = executor.run({x, w, integer(i)});
    outputs.wait();
    const auto first = static_cast<float>(4 * i);
    EXPECT_EQ(floatsOf(*device, outputs[0]), ramp(12, 0, 2));
    EXPECT_EQ(floatsOf(*device, outputs[1]), ramp(2, -first, -2));
    EXPECT_EQ(floatsOf(*device, outputs[2]), (std::vector<float>{2 * first + 2, first + 2}));
    EXPECT_EQ(floatsOf(*device, outputs[3]), ramp(2, first, 2));
    EXPECT_EQ(outputs.aliased(3)->index, 0U);
  }
  EXPECT_EQ(executor.stats().plans, 1);
  EXPECT_NE(userErrorOf([&] { executor.run({x, w, integer(6)}); }), "");
}

// A kernel writes one row of a cache per step. One cache is an input, the other one is computed.
TEST(LateScalars, KernelsWriteOneRowPerStep) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  Executable executable(
      host::parseProgram(
          "heddle 1\n"
          "kernel @twice {\n  fusion twice(%new: f32[1, 2]) {\n    %row = mul(%new, 2.0)\n"
          "    return %row\n  }\n}\n"
          "kernel @zero {\n  fusion zero(%cache: f32[t, 2]) {\n    %own = mul(%cache, 0.0)\n"
          "    return %own\n  }\n}\n"
          "program p(%cache: f32[t, 2], %new: f32[1, 2], %i: i64) -> (%own, %cache) {\n"
          "  slot %own: f32[t, 2]\n  slot %row: f32[1, 2]\n  slot %own_row: f32[1, 2]\n"
          "  %row = alias %cache slice starts=[%i, 0] stops=[%i + 1, 2]\n"
          "  launch @twice(%new) -> (%row) stream=0\n"
          "  %own = allocate stream=0\n  launch @zero(%cache) -> (%own) stream=0\n"
          "  %own_row = alias %own slice starts=[%i, 0] stops=[%i + 1, 2]\n"
          "  launch @twice(%row) -> (%own_row) stream=0\n}\n",
          "p"),
      {device.get()});
  const Tensor cache = deviceFloats(*device, ramp(8, 0, 0), {4, 2});
  for (int64_t i = 0; i < 4; ++i) {
    const auto value = static_cast<float>(i);
    const Outputs outputs =
        executable.run({cache, deviceFloats(*device, {value, value}, {1, 2}), integer(i)});
    outputs.wait();
    std::vector<float> expected(8, 0);
    expected[static_cast<size_t>(2 * i)] = expected[static_cast<size_t>(2 * i) + 1] = 4 * value;
    EXPECT_EQ(floatsOf(*device, outputs[0]), expected);
  }
  EXPECT_EQ(floatsOf(*device, cache), (std::vector<float>{0, 0, 2, 2, 4, 4, 6, 6}));
  EXPECT_EQ(executable.stats().plans, 1);
}

// Each rank holds columns of the cache, and a collective gathers the row.
TEST(LateScalars, CollectivesReadRowsOfComputedCaches) {
  const Fusion fusion = fusionOf(
      "mesh @m = [x=ranks]\n"
      "fusion f(%x: f32[t, n] shard(@m, 1: x), %i: i64) {\n"
      "  %cache = mul(%x, 2.0)\n"
      "  %row = slice(%cache, starts=[%i, 0], stops=[%i + 1, n])\n"
      "  return %cache, %row shard(@m)\n}\n");
  const auto errors = testing::onRanks(2, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 3});
    FusionExecutor executor(fusion, {device.get(), &world});
    const float begin = static_cast<float>(2 * world.rank());
    Tensor x = deviceFloats(*device, {begin, begin + 1, begin + 4, begin + 5, begin + 8, begin + 9},
                            {3, 2});
    x.desc.global = {3, 4};
    x.desc.offset = {0, 2 * world.rank()};
    for (const int64_t i : {2, 0, 1}) {
      const Outputs outputs = executor.run({x, integer(i)});
      outputs.wait();
      EXPECT_EQ(floatsOf(*device, outputs[1]), ramp(4, static_cast<float>(8 * i), 2));
    }
    EXPECT_EQ(executor.stats().plans, 1);
    world.barrier();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST(LateScalars, RanksShareAPlanForAllSteps) {
  const Fusion fusion = fusionOf(
      "mesh @m = [x=ranks]\n"
      "fusion f(%cache: f32[t, 3] shard(@m), %w: f32[n] shard(@m, 0: x), %i: "
      "i64) {\n"
      "  %row = slice(%cache, starts=[%i, 0], stops=[%i + 1, 3])\n"
      "  %s = sum(%w)\n  %y = add(%row, %s)\n  return %y shard(@m)\n}\n");
  const auto errors = testing::onRanks(2, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    int lowered = 0;
    CompileOptions options;
    options.passes.timing = [&](std::string_view pass, double) {
      lowered += pass == "propagateSharding" ? 1 : 0;
    };
    FusionExecutor executor(fusion, {device.get(), &world}, options);
    const Tensor cache = deviceFloats(*device, ramp(12, 0, 1), {4, 3});
    Tensor w = deviceFloats(*device, {1, 2}, {2});
    w.desc.global = {4};
    w.desc.offset = {2 * world.rank()};
    for (const int64_t i : {2, 0, 3, 1}) {
      const Outputs outputs = executor.run({cache, w, integer(i)});
      outputs.wait();
      EXPECT_EQ(floatsOf(*device, outputs[0]), ramp(3, static_cast<float>(3 * i + 6), 1));
    }
    EXPECT_EQ(executor.stats().plans, 1);
    EXPECT_EQ(lowered, 1);
    world.barrier();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

// The slice is a view of the complete sharded axis, which is possible only if %i is 0.
TEST(LateScalars, RunsOverACompleteShardedAxisShareAPlan) {
  const auto errors = testing::onRanks(2, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    Executable executable(programOf("mesh @m = [x=2]\n"
                                    "program p(%x: f32[t, 2] shard(@m, 0: x), %i: i64) -> (%v) {\n"
                                    "  slot %v: f32[t, 2] shard(@m, 0: x)\n"
                                    "  %v = alias %x slice starts=[%i, 0] stops=[%i + t, 2]\n}\n"),
                          {device.get(), &world});
    const auto first = static_cast<float>(4 * world.rank());
    Tensor x = deviceFloats(*device, ramp(4, first, 1), {2, 2});
    x.desc.global = {4, 2};
    x.desc.offset = {2 * world.rank(), 0};
    for (int run = 0; run < 3; ++run) {
      const Outputs outputs = executable.run({x, integer(0)});
      outputs.wait();
      EXPECT_EQ(floatsOf(*device, outputs[0]), ramp(4, first, 1));
    }
    EXPECT_EQ(executable.stats().plans, 1);
    world.barrier();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

// In the second trip of the loop, %row and %source are views of one tensor. Their distance depends
// on both scalars, so a new distance needs a new plan, which checks it.
TEST(LateScalars, DistanceOfViewsThatALoopDefinesAgainIsChecked) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  Executable executable(
      host::parseProgram(
          "heddle 1\n"
          "kernel @turned {\n  fusion turned(%s: f32[2, 2]) {\n    %r = flip(%s, axes=[0])\n"
          "    return %r\n  }\n}\n"
          "program p(%a: f32[t, 2], %b: f32[t, 2], %i: i64 = 0, %j: i64 = 4) -> (%a, %b)\n"
          "    with t = 8 {\n  slot %row: f32[2, 2]\n  slot %source: f32[2, 2]\n"
          "  %row = alias %a slice starts=[%i, 0] stops=[%i + 2, 2]\n"
          "  %source = alias %b slice starts=[%j, 0] stops=[%j + 2, 2]\n"
          "  for k in 0 .. 2 {\n"
          "    launch @turned(%source) -> (%row) stream=0\n"
          "    %row = alias %b slice starts=[%i, 0] stops=[%i + 2, 2]\n  }\n}\n",
          "p"),
      {device.get()});
  const auto run = [&](int64_t i, int64_t j) {
    const Tensor a = deviceFloats(*device, ramp(16, 0, 1), {8, 2});
    const Tensor b = deviceFloats(*device, ramp(16, 0, 1), {8, 2});
    executable.run({a, b, integer(i), integer(j)}).wait();
    return floatsOf(*device, b);
  };
  std::vector<float> expected = ramp(16, 0, 1);
  std::copy_n(std::vector<float>{10, 11, 8, 9}.begin(), 4, expected.begin());
  EXPECT_EQ(run(0, 4), expected);
  EXPECT_NE(userErrorOf([&] { run(3, 4); }).find("share memory"), std::string::npos);
}

// The program defines the input %a again as a view of itself. Views of %a still count as views of
// one tensor, so a kernel may write one of them if it does not overlap with the view that it reads.
TEST(LateScalars, DistanceOfViewsOfAnInputThatIsAViewOfItselfIsKnown) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  Executable executable(
      host::parseProgram(
          "heddle 1\n"
          "kernel @turned {\n  fusion turned(%s: f32[2, 2]) {\n    %r = flip(%s, axes=[0])\n"
          "    return %r\n  }\n}\n"
          "program p(%a: f32[t, 2], %i: i64 = 0, %j: i64 = 4) -> (%a)\n    with t = 8 {\n"
          "  slot %row: f32[2, 2]\n  slot %source: f32[2, 2]\n"
          "  %a = alias %a\n"
          "  %row = alias %a slice starts=[%i, 0] stops=[%i + 2, 2]\n"
          "  %source = alias %a slice starts=[%j, 0] stops=[%j + 2, 2]\n"
          "  launch @turned(%source) -> (%row) stream=0\n}\n",
          "p"),
      {device.get()});
  const auto run = [&](int64_t i, int64_t j) {
    const Tensor a = deviceFloats(*device, ramp(16, 0, 1), {8, 2});
    executable.run({a, integer(i), integer(j)}).wait();
    return floatsOf(*device, a);
  };
  std::vector<float> expected = ramp(16, 0, 1);
  std::copy_n(std::vector<float>{10, 11, 8, 9}.begin(), 4, expected.begin());
  EXPECT_EQ(run(0, 4), expected);
  EXPECT_NE(userErrorOf([&] { run(3, 4); }).find("share memory"), std::string::npos);
}

}  // namespace
}  // namespace heddle::host::late_scalars_cpu_test
