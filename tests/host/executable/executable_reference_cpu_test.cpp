// Tests that a CPU device without a compiler runs kernels by the reference evaluator.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <thread>

#include "host/device/cpu/cpu_device.h"
#include "host/fusion_executor.h"
#include "host/job/worlds.h"
#include "host/tensor.h"
#include "tests/host/executable_common.h"

namespace heddle::host::executable_reference_cpu_test {
namespace {

using testing::deviceFloats;
using testing::floatsOf;
using testing::programOf;
using testing::ramp;

struct ExecutableReference : ::testing::Test {
  void SetUp() override { setenv("HEDDLE_CXX", "/nonexistent/compiler", 1); }
  void TearDown() override { unsetenv("HEDDLE_CXX"); }
};

TEST_F(ExecutableReference, FusionRunsWithoutACompiler) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  FusionBuilder b("f");
  const ValueId x = b.input("x", DType::F32, {Size::symbol("t"), Size::symbol("h")});
  const ValueId s = b.scalarInput("s", DType::F32, Scalar(3.0));
  b.output(b.reduce("sum", b.pointwise("mul", {x, s}), {1}));
  FusionExecutor executor(std::move(b).build(), {device.get(), nullptr, nullptr});
  for (const size_t h : {4, 6}) {
    const std::vector<float> values = ramp(2 * h, 1, 1);
    const Outputs outputs =
        executor.run({deviceFloats(*device, values, {2, static_cast<int64_t>(h)})});
    outputs.wait();
    std::vector<float> expected(2, 0.0f);
    for (size_t i = 0; i < values.size(); ++i) expected[i / h] += 3 * values[i];
    EXPECT_EQ(floatsOf(*device, outputs[0]), expected);
  }
}

// Constant extents, and sizes in attributes, are those of the unsharded tensor. The reference
// evaluator must compute only the block of the rank.
TEST_F(ExecutableReference, UnevenShardedKernelRunsWithoutACompiler) {
  const char* const text = R"(
mesh @m = [x=2]
kernel @k {
  fusion k(%x: f32[5, h] shard(@m, 0: x), %b: f32[h] shard(@m)) with h = 3 {
    %row = broadcast(%b, axes=[0])
    %all = expand(%row, sizes=[5, h]) shard(@m, 0: x)
    %y = add(%x, %all)
    return %y shard(@m, 0: x)
  }
}
program p(%x: f32[5, h] shard(@m, 0: x), %b: f32[h] shard(@m)) -> (%y) with h = 3 {
  slot %y: f32[5, h] shard(@m, 0: x)
  %y = allocate stream=0
  launch @k(%x, %b) -> (%y) stream=0
}
)";
  auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, 2);
  std::vector<std::thread> threads;
  for (auto& world : worlds) {
    threads.emplace_back([&world = *world, text] {
      const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
      Executable executable(programOf(text), {device.get(), &world, nullptr});
      const auto first = static_cast<float>(3 * world.rank());
      const auto rows = static_cast<size_t>(world.rank() == 0 ? 3 : 2);
      HostTensor x(DType::F32, {static_cast<int64_t>(rows), 2});
      for (size_t i = 0; i < 2 * rows; ++i) x.as<float>()[i] = first + static_cast<float>(i / 2);
      const TensorDesc desc = inputDesc(executable.program(), 0, {{"h", 2}}, world.rank(), 2);
      const Outputs outputs = executable.run(
          {toDevice(*device, device->allocator(), x, desc), deviceFloats(*device, {10, 20}, {2})});
      outputs.wait();
      std::vector<float> expected;
      for (size_t row = 0; row < rows; ++row) {
        expected.push_back(first + static_cast<float>(row) + 10);
        expected.push_back(first + static_cast<float>(row) + 20);
      }
      EXPECT_EQ(floatsOf(*device, outputs[0]), expected) << world.rank();
      world.barrier();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace heddle::host::executable_reference_cpu_test
