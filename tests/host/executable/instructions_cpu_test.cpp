// Compares instructions that no other test runs on a device with results written out by hand.
#include <gtest/gtest.h>

#include "host/device/cpu/cpu_device.h"
#include "tests/host/example_files.h"
#include "tests/host/executable_common.h"

namespace heddle::host::instructions_cpu_test {
namespace {

using testing::deviceFloats;
using testing::floatsOf;
using testing::programOf;

// Prints and parses the program, and runs the result on `ranks` ranks. The input of a rank is {rank
// + 1, 10 * (rank + 1), ...}. Returns the first output of each rank.
std::vector<std::vector<float>> onRanks(int ranks, size_t count, const std::string& text) {
  const Program program = testing::printedAndParsed(programOf(text));
  EXPECT_TRUE(sameProgram(program, programOf(text)));
  auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, ranks);
  std::vector<std::vector<float>> got(worlds.size());
  testing::onEachWorld(worlds, [&](int rank, std::unique_ptr<comm::World>& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 7});
    Executable executable(program, {device.get(), world.get(), nullptr});
    std::vector<float> x(count, static_cast<float>(rank + 1));
    for (size_t i = 1; i < count; ++i) x[i] = 10 * x[i - 1];
    const Tensor input = deviceFloats(*device, x, {static_cast<int64_t>(count)});
    const Outputs outputs = executable.run({input});
    outputs.wait();
    got[static_cast<size_t>(rank)] = floatsOf(*device, outputs[0]);
    world->barrier();
  });
  return got;
}

using Rows = std::vector<std::vector<float>>;

TEST(Instructions, CallRunsTheCalledProgram) {
  EXPECT_EQ(onRanks(1, 3, R"(
kernel @double {
  fusion double(%a: f32[u]) {
    %b = add(%a, %a)
    return %b
  }
}
program twice(%a: f32[u]) -> (%b) {
  slot %b: f32[u]
  %b = allocate stream=0
  launch @double(%a) -> (%b) stream=0
}
program main(%x: f32[n]) -> (%z) with n = 5 {
  slot %y: f32[n]
  slot %z: f32[n]
  call @twice(%x) -> (%y)
  call @twice(%y) -> (%z)
  free %y stream=0
}
)"),
            (Rows{{4, 40, 400}}));
}

TEST(Instructions, StaticIfAndOnMeshSelectRanks) {
  EXPECT_EQ(onRanks(3, 2, R"(
mesh @pair = [x=2]
kernel @negate {
  fusion negate(%a: f32[n]) {
    %b = neg(%a)
    return %b
  }
}
program p(%x: f32[n]) -> (%y) with n = 4 {
  slot %y: f32[n]
  %y = allocate stream=0
  if rank >= 1 {
    launch @negate(%x) -> (%y) stream=0
  } else {
    copy %x -> %y stream=0
  }
  on @pair: $t = communicate allreduce %y -> %y team=@pair[x] op=sum stream=0
  on @pair: wait $t stream=0
}
)"),
            (Rows{{-1, -10}, {-1, -10}, {-3, -30}}));
}

TEST(Instructions, SendAndRecvWorkOutsideAGroup) {
  EXPECT_EQ(onRanks(3, 2, R"(
program p(%x: f32[n]) -> (%y) with n = 4 {
  slot %y: f32[n]
  %y = allocate stream=0
  copy %x -> %y stream=0
  if rank == 0 {
    $s = send %x to=2 stream=0
    wait $s stream=0
  }
  if rank == 2 {
    $r = recv %y from=0 stream=0
    wait $r stream=0
  }
}
)"),
            (Rows{{1, 10}, {2, 20}, {1, 10}}));
}

TEST(Instructions, ReduceScatterThenAllgatherIsAnAllreduce) {
  EXPECT_EQ(onRanks(2, 4, R"(
mesh @m = [x=2]
program p(%x: f32[n]) -> (%y) with n = 4 {
  slot %part: f32[n] shard(@m, 0: x)
  slot %y: f32[n]
  %part = allocate stream=0
  $a = communicate reduce_scatter %x -> %part team=@m[x] op=max stream=0
  wait $a stream=0
  %y = allocate stream=0
  $b = communicate allgather %part -> %y team=@m[x] stream=0
  wait $b stream=0
  free %part stream=0
}
)"),
            (Rows{{2, 20, 200, 2000}, {2, 20, 200, 2000}}));
}

TEST(Instructions, LoopCopiesChunksOfAStridedView) {
  EXPECT_EQ(onRanks(1, 6, R"(
program p(%x: f32[n]) -> (%y) with n = 6 {
  slot %rows: f32[3, 2]
  slot %row: f32[2]
  slot %turned: f32[3, 2]
  slot %column: f32[2]
  slot %y: f32[2, 3]
  %y = allocate stream=0
  %rows = alias %x reshape
  %turned = alias %y permute=[1, 0]
  for i in 0 .. 3 {
    %row = alias %rows[i]
    %column = alias %turned[2 - i]
    copy %row -> %column stream=0
  }
}
)"),
            (Rows{{10000, 100, 1, 100000, 1000, 10}}));
}

TEST(Instructions, PrintShowsTensorsAndScalars) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  Executable executable(programOf(R"(
program p(%x: f32[n], %s: f64) -> (%x) with n = 4 {
  print %x stream=0
  print %s stream=0
}
)"),
                        {device.get(), nullptr, nullptr});
  ::testing::internal::CaptureStdout();
  executable.run({deviceFloats(*device, {1, -2.5, 3}, {3}), Scalar(0.25)}).wait();
  executable.run({deviceFloats(*device, std::vector<float>(9, 1), {9}), Scalar(1.0)}).wait();
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "%x: f32[3] = 1.0 -2.5 3.0\n%s = 0.25\n"
            "%x: f32[9] = 1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0 ...\n%s = 1.0\n");
}

// The symbol n of the kernel is 3, because %a has 2*n elements. The symbol n of the program is 1.
TEST(Instructions, PadWidthsOfAKernelUseItsOwnSymbols) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  Executable executable(programOf(R"(
kernel @front {
  fusion front(%a: f32[2*n]) {
    %b = pad(%a, 0.5, lows=[n], highs=[0])
    return %b
  }
}
program main(%x: f32[t], %z: f32[n]) -> (%y) {
  slot %y: f32[t + floordiv(t, 2)]
  %y = allocate stream=0
  launch @front(%x) -> (%y) stream=0
}
)"),
                        {device.get()});
  const Outputs outputs = executable.run(
      {deviceFloats(*device, testing::ramp(6, 1, 1), {6}), deviceFloats(*device, {0}, {1})});
  outputs.wait();
  EXPECT_EQ(floatsOf(*device, outputs[0]), (std::vector<float>{0.5, 0.5, 0.5, 1, 2, 3, 4, 5, 6}));
}

TEST(Instructions, GuardsOfAKernelArePrintedAndChecked) {
  const Program program = programOf(R"(
kernel @double {
  fusion double(%a: f32[u]) {
    guard u <= 4 "the buffer of the kernel"
    %b = add(%a, %a)
    return %b
  }
}
program main(%x: f32[n]) -> (%y) with n = 3 {
  slot %y: f32[n]
  %y = allocate stream=0
  launch @double(%x) -> (%y) stream=0
}
)");
  EXPECT_NE(print(program).find("    guard u <= 4 \"the buffer of the kernel\"\n"),
            std::string::npos);
  EXPECT_EQ(print(testing::printedAndParsed(program)), print(program));
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  Executable executable(program, {device.get()});
  const auto run = [&](int64_t n) {
    const Outputs outputs =
        executable.run({deviceFloats(*device, testing::ramp(static_cast<size_t>(n), 1, 1), {n})});
    outputs.wait();
    return floatsOf(*device, outputs[0]);
  };
  EXPECT_EQ(run(4), testing::ramp(4, 2, 2));
  EXPECT_NE(testing::userErrorOf([&] {
              run(5);
            }).find("kernel double: the buffer of the kernel: u is 5, expected at most 4"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle::host::instructions_cpu_test
