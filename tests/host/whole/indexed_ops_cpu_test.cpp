// Tests new tensors (iota, full) and indexed loads with shardings. Compiled kernels and the
// reference evaluator must give the results of the unsharded fusion.
#include <gtest/gtest.h>

#include <cstdlib>

#include "host/compile.h"
#include "host/device/cpu/cpu_device.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"
#include "tests/host/lookup_bits.h"
#include "tests/host/rank_harness.h"

namespace heddle::host::indexed_ops_cpu_test {
namespace {

using testing::deviceFloats;
using testing::floatsOf;
using testing::programOf;
using testing::userErrorOf;

// The sizes 10, 5 and 7 give uneven blocks on 2 and 3 ranks. The sharding of %alone comes only from
// its annotation. The sharding of %row comes only from its readers.
constexpr const char* kIndexed = R"(heddle 1
mesh @m = [x=ranks]
fusion placed(%x: f32[a, b] shard(@m, 0: x), %i: i64[n] shard(@m, 0: x),
              %j: i64[a, b] shard(@m, 0: x)) with a = 10, b = 7, n = 5 {
  %row = iota(sizes=[a, b], axis=0)
  %col = iota(sizes=[a, b], axis=1)
  %w = mul(%row, 7)
  %linear = add(%w, %col)
  %y = add(%x, %linear)
  %alone = iota(sizes=[a], axis=0) shard(@m, 0: x)
  %f = flip(%x, axes=[0])
  %g = flip(%y, axes=[1])
  %p = pad(%y, 0.5, lows=[1, -2], highs=[-1, 3])
  %t = take(%y, %i, axis=0)
  %u = take_along_axis(%y, %j, axis=1)
  %e = eq(%row, %col)
  %z = full(0.25, sizes=[a, b], dtype=f32)
  %big = full(1000, sizes=[a, b], dtype=i64)
  %eye = where(%e, %y, %z)
  %place = where(%e, %row, %big)
  %first = min(%place, axes=[0])
  %odd = slice(%y, starts=[0, 1], stops=[a, b], steps=[1, 2])
  %third = slice(%y, starts=[1, 0], stops=[a, b], steps=[4, 9])
  %more = add(%odd, 1.0)
  return %y, %alone, %f, %g, %p, %t, %u, %eye, %first, %more, %third
}
)";

void expectReference(int ranks) {
  const Fusion fusion = parseFusion(kIndexed);
  testing::HarnessOptions options;
  options.ranks = ranks;
  options.sizes = testing::defaultSizes(fusion.size_defaults);
  options.cpu.adversarial_seed = static_cast<uint64_t>(ranks);
  const auto got = testing::runProgram(compile(fusion, ranks), options);
  const auto expected = testing::expectedOf(fusion, options);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(testing::relativeError(got[i], expected[i]), 0) << "output " << i << ", " << ranks;
  }
}

TEST(IndexedOps, CompiledKernelsMatchTheUnshardedFusion) {
  for (int ranks : {1, 2, 3}) expectReference(ranks);
}

TEST(IndexedOps, ReferenceKernelsMatchTheUnshardedFusion) {
  setenv("HEDDLE_CXX", "/nonexistent/compiler", 1);
  for (int ranks : {1, 2, 3}) expectReference(ranks);
  unsetenv("HEDDLE_CXX");
}

void expectBitsOnRanks() {
  for (int ranks : {2, 3, 4}) {
    auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, ranks);
    testing::onEachWorld(worlds, [](int, std::unique_ptr<comm::World>& world) {
      const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
      testing::expectLookupBits(*world, *device);
    });
  }
}

TEST(IndexedOps, CompiledLookupsAlongAShardedAxisKeepEveryBit) { expectBitsOnRanks(); }

TEST(IndexedOps, ReferenceLookupsAlongAShardedAxisKeepEveryBit) {
  setenv("HEDDLE_CXX", "/nonexistent/compiler", 1);
  expectBitsOnRanks();
  unsetenv("HEDDLE_CXX");
}

TEST(IndexedOps, OutputOnAnIndexedOperandIsRefused) {
  const auto run = [](const std::string& op) {
    const Program program = programOf(R"(
kernel @k {
  fusion k(%a: f32[n]) {
    %b = )" + op + R"(
    return %b
  }
}
program main(%x: f32[n]) -> (%y) with n = 4 {
  slot %y: f32[n]
  %y = allocate stream=0
  copy %x -> %y stream=0
  launch @k(%y) -> (%y) stream=0
}
)");
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    Executable executable(program, {device.get(), nullptr, nullptr});
    const Outputs outputs = executable.run({deviceFloats(*device, {1, 2, 3, 4}, {4})});
    outputs.wait();
    return floatsOf(*device, outputs[0]);
  };
  EXPECT_EQ(run("neg(%a)"), (std::vector<float>{-1, -2, -3, -4}));
  const std::string error = userErrorOf([&] { run("flip(%a, axes=[0])"); });
  EXPECT_NE(error.find("the kernel reads %a at computed indices"), std::string::npos) << error;
  EXPECT_NE(error.find("launch @k(%y) -> (%y)"), std::string::npos) << error;
}

}  // namespace
}  // namespace heddle::host::indexed_ops_cpu_test
