// Tests sizes that may be 1 in a run, such as n in f32[n?]. The expected values follow from NumPy's
// rules of broadcasting.
#include "host/compile.h"
#include "host/device/cpu/cpu_device.h"
#include "host/device/null/null_device.h"
#include "ir/graph/builder.h"
#include "tests/host/on_ranks.h"
#include "tests/host/sizes/symbolic_sizes.h"

namespace heddle::host::symbolic_sizes_cpu_test {
namespace {

using testing::deviceFloats;
using testing::floatsOf;
using testing::onRanks;
using testing::ramp;
using testing::userErrorOf;

Fusion fusionOf(const std::string& text) { return parseFusion("heddle 1\n" + text); }

std::unique_ptr<Device> cpu() { return makeCpuDevice({.threads = 1, .adversarial_seed = {}}); }

// Runs the fusion and returns the elements of output 0.
std::vector<float> firstOutput(FusionExecutor& executor, Device& device,
                               const std::vector<Argument>& inputs) {
  const Outputs outputs = executor.run(inputs);
  outputs.wait();
  return floatsOf(device, outputs[0]);
}

std::vector<int64_t> sizesOf(const Argument& output) { return std::get<Tensor>(output).desc.sizes; }

TEST(SymbolicSizes, SizesOfOneBroadcast) { symbolic_sizes::expectAllPairs(*cpu()); }

// The batch axis of %a broadcasts, and so does the bias.
TEST(SymbolicSizes, MatmulsBroadcast) {
  const auto device = cpu();
  FusionExecutor executor(fusionOf("fusion f(%a: f32[b?, 1, k], %c: f32[batch, k, 1],\n"
                                   "    %w: f32[2, k], %bias: f32[o?]) {\n"
                                   "  %y = matmul(%a, %c)\n  %z = linear(%a, %w, %bias)\n"
                                   "  return %y, %z\n}\n"),
                          {device.get()});
  const Tensor c = deviceFloats(*device, {1, 2, 3, 4}, {2, 2, 1});
  const Tensor w = deviceFloats(*device, {1, 0, 0, 1}, {2, 2});
  const Tensor one = deviceFloats(*device, {5, 6}, {1, 1, 2});
  const Tensor two = deviceFloats(*device, {5, 6, 7, 8}, {2, 1, 2});
  for (const bool is_one : {true, false, true}) {
    const Tensor bias =
        is_one ? deviceFloats(*device, {10}, {1}) : deviceFloats(*device, {10, 20}, {2});
    const Outputs outputs = executor.run({is_one ? one : two, c, w, bias});
    outputs.wait();
    EXPECT_EQ(sizesOf(outputs[0]), (std::vector<int64_t>{2, 1, 1}));
    EXPECT_EQ(floatsOf(*device, outputs[0]),
              is_one ? (std::vector<float>{17, 39}) : (std::vector<float>{17, 53}));
    EXPECT_EQ(floatsOf(*device, outputs[1]),
              is_one ? (std::vector<float>{15, 16}) : (std::vector<float>{15, 26, 17, 28}));
  }
  EXPECT_EQ(executor.stats().programs, 2);
}

// Only the scalar changes, so only the scalar can select the program.
TEST(SymbolicSizes, ScalarDecidesWhetherAnAxisBroadcasts) {
  const auto device = cpu();
  FusionExecutor executor(fusionOf("fusion f(%x: f32[t], %y: f32[m, h], %k: i64?) {\n"
                                   "  %r = reshape(%x, sizes=[%k, -1])\n  %a = add(%r, %y)\n"
                                   "  return %a\n}\n"),
                          {device.get()});
  const Tensor x = deviceFloats(*device, {1, 2, 3, 4}, {4});
  const Tensor row = deviceFloats(*device, {10, 20, 30, 40, 50, 60, 70, 80}, {2, 4});
  const Tensor square = deviceFloats(*device, {10, 20, 30, 40}, {2, 2});
  for (int repeat = 0; repeat < 2; ++repeat) {
    EXPECT_EQ(firstOutput(executor, *device, {x, row, Scalar(int64_t{1})}),
              (std::vector<float>{11, 22, 33, 44, 51, 62, 73, 84}));
    EXPECT_EQ(firstOutput(executor, *device, {x, square, Scalar(int64_t{2})}),
              (std::vector<float>{11, 22, 33, 44}));
    const std::string error = userErrorOf([&] { executor.run({x, row, Scalar(int64_t{2})}); });
    EXPECT_NE(error.find("axis 1 of"), std::string::npos) << error;
  }
  EXPECT_EQ(executor.stats().programs, 2);
}

// %x is on all ranks, and its rows broadcast over the sharded rows of %y.
TEST(SymbolicSizes, RanksDecideTheSame) {
  const Fusion fusion = fusionOf(
      "mesh @m = [x=ranks]\n"
      "fusion f(%x: f32[n?] shard(@m), %y: f32[t] shard(@m, 0: x)) {\n"
      "  %a = add(%x, %y)\n  %s = sum(%a)\n"
      "  return %a shard(@m, 0: x), %s shard(@m)\n}\n");
  const auto errors = onRanks(2, [&](comm::World& world) {
    const auto device = cpu();
    FusionExecutor executor(fusion, {device.get(), &world});
    const auto rank = static_cast<float>(world.rank());
    Tensor y = deviceFloats(*device, ramp(2, 2 * rank, 1), {2});
    y.desc.global = {4};
    for (const int64_t n : {1, 4, 1}) {
      const Tensor x = deviceFloats(*device, ramp(static_cast<size_t>(n), 10, 10), {n});
      const Outputs outputs = executor.run({x, y});
      outputs.wait();
      EXPECT_EQ(floatsOf(*device, outputs[0]),
                n == 1 ? ramp(2, 10 + 2 * rank, 1) : ramp(2, 10 + 22 * rank, 11));
      EXPECT_EQ(floatsOf(*device, outputs[1]), std::vector<float>{n == 1 ? 46.0F : 106.0F});
    }
    EXPECT_EQ(executor.stats().programs, 2);
    world.barrier();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST(SymbolicSizes, BuilderDeclaresSymbolicSizes) {
  FusionBuilder builder("f");
  builder.symbolicSize("n");
  const ValueId x = builder.input("x", DType::F32, {Size::symbol("n")});
  const ValueId y = builder.input("y", DType::F32, {Size::symbol("m")});
  builder.output(builder.pointwise("add", {x, y}));
  EXPECT_NE(userErrorOf([&] { builder.symbolicSize("m"); }).find("before the first op"),
            std::string::npos);
  const Fusion fusion = std::move(builder).build();
  const auto device = cpu();
  FusionExecutor executor(fusion, {device.get()});
  EXPECT_EQ(firstOutput(executor, *device,
                        {deviceFloats(*device, {5}, {1}), deviceFloats(*device, {1, 2}, {2})}),
            (std::vector<float>{6, 7}));
  EXPECT_EQ(executor.inputDescs({{"n", 1}, {"m", 3}})[0].sizes, std::vector<int64_t>{1});
  EXPECT_EQ(executor.inputDescs({{"n", 3}, {"m", 3}})[0].sizes, std::vector<int64_t>{3});
}

// compile() decides from its default whether n? is 1. Without a default, the error names the size.
TEST(SymbolicSizes, CompileNeedsADefault) {
  const Fusion fusion = fusionOf("fusion f(%x: f32[n?]) {\n  %y = neg(%x)\n  return %y\n}\n");
  EXPECT_NE(userErrorOf([&] { compile(fusion, 1); }).find("size n? has no value"),
            std::string::npos);
}

TEST(SymbolicSizes, ErrorsShowTheDeclaredTypes) {
  const auto device = cpu();
  FusionExecutor executor(fusionOf("fusion f(%x: f32[n?, h], %y: f32[m, k]) {\n"
                                   "  %a = add(%x, %y)\n  return %a\n}\n"),
                          {device.get()});
  const auto errorOf = [&](int64_t n, int64_t h) {
    const std::vector<float> zeros(static_cast<size_t>(n * h));
    const std::vector<Argument> inputs = {deviceFloats(*device, zeros, {n, h}),
                                          deviceFloats(*device, std::vector<float>(8), {4, 2})};
    return userErrorOf([&] { executor.run(inputs).wait(); });
  };
  EXPECT_EQ(errorOf(3, 2),
            "axis 0 of %x: f32[n?, h] and of %y: f32[m, k], operands of add at line 3: n = 3 and m "
            "= 4 must be equal");
  EXPECT_EQ(errorOf(1, 5),
            "axis 1 of %x: f32[n?, h] and of %y: f32[m, k], operands of add at line 3: h = 5 and k "
            "= 2 must be equal");
}

TEST(SymbolicSizes, NullDeviceRunsBothCases) {
  const auto device = makeNullDevice();
  FusionExecutor executor(fusionOf("fusion f(%x: f32[n?], %y: f32[m]) {\n"
                                   "  %a = add(%x, %y)\n  return %a\n}\n"),
                          {device.get()});
  for (const int64_t n : {1, 8, 1}) {
    EXPECT_EQ(sizesOf(executor.run({testing::nullTensor({n}), testing::nullTensor({8})})[0]),
              std::vector<int64_t>{8});
  }
  EXPECT_EQ(executor.stats().programs, 2);
}

}  // namespace
}  // namespace heddle::host::symbolic_sizes_cpu_test
