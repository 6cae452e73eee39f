// Tests that outputs have the memory orders that the user requires, whatever computes them, and
// that results follow the orders of the inputs. The results are compared with the reference
// evaluator, which knows no orders.
#include <gtest/gtest.h>

#include "host/compile.h"
#include "host/fusion_executor.h"
#include "host/tensor.h"
#include "ir/graph/builder.h"
#include "ir/text/fusion_text.h"
#include "tests/host/example_files.h"
#include "tests/host/rank_harness.h"

namespace heddle::host::memory_orders_cpu_test {
namespace {

using Strides = std::vector<std::vector<int64_t>>;

// Runs the fusion on several ranks at its default sizes. Compares the results with the reference,
// and returns the strides of the outputs of rank 0.
Strides stridesOf(const Fusion& fusion, int ranks) {
  testing::HarnessOptions options;
  options.ranks = ranks;
  options.sizes = testing::defaultSizes(fusion.size_defaults);
  options.cpu.adversarial_seed = 3;
  const Program program = compile(fusion, ranks);
  auto worlds = makeInProcessWorldsFor(options.kind, ranks);
  std::vector<testing::RankOutputs> outputs(worlds.size());
  testing::onEachWorld(worlds, [&](int rank, std::unique_ptr<comm::World>& world) {
    const std::unique_ptr<Device> device = testing::makeTestDevice(options);
    outputs[static_cast<size_t>(rank)] = testing::runRank(program, *world, *device, options);
    world->barrier();
  });
  const std::vector<HostTensor> got = testing::assemble(outputs);
  const std::vector<HostTensor> expected = testing::expectedOf(fusion, options);
  Strides strides;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_LE(testing::relativeError(got[i], expected[i]), 1e-2) << "output " << i;
    strides.push_back(outputs.front().descs[i].strides);
  }
  return strides;
}

Strides stridesOf(const std::string& text, int ranks = 1) {
  return stridesOf(parseFusion("heddle 1\n" + text), ranks);
}

TEST(MemoryOrders, KernelsStoreRequiredOrders) {
  EXPECT_EQ(stridesOf("fusion f(%x: f32[m, n]) with m = 5, n = 7 {\n"
                      "  %e = exp(%x)\n"
                      "  %s = softmax(%x, axis=1)\n"
                      "  %t = sum(%x, axes=[1], keepdim=true)\n"
                      "  return %e order=[1, 0], %s order=[1, 0], %e, %e order=[0, 1], %t\n"
                      "}\n"),
            (Strides{{1, 5}, {1, 5}, {1, 5}, {7, 1}, {1, 1}}));
}

TEST(MemoryOrders, LibraryCallsStoreRequiredOrders) {
  EXPECT_EQ(stridesOf("fusion f(%x: f32[b, m, k], %y: f32[b, k, n], %w: f32[n, k], %v: f32[n])\n"
                      "    with b = 2, m = 3, k = 4, n = 5 {\n"
                      "  %p = matmul(%x, %y)\n"
                      "  %l = linear(%x, %w, %v, activation=relu)\n"
                      "  %c = cumsum(%x, axis=1)\n"
                      "  return %p order=[2, 1, 0], %l order=[1, 2, 0], %c order=[2, 0, 1],\n"
                      "         %p order=[0, 2, 1]\n"
                      "}\n"),
            (Strides{{1, 2, 6}, {1, 10, 2}, {3, 1, 6}, {15, 1, 3}}));
}

TEST(MemoryOrders, AttentionStoresRequiredOrders) {
  EXPECT_EQ(stridesOf("fusion f(%q: f32[h, t, e], %k: f32[h, s, e], %v: f32[h, s, e])\n"
                      "    with h = 2, t = 3, s = 4, e = 8 {\n"
                      "  %o = scaled_dot_product_attention(%q, %k, %v)\n"
                      "  return %o order=[1, 0, 2], %o order=[2, 1, 0]\n"
                      "}\n"),
            (Strides{{8, 16, 1}, {1, 2, 6}}));
}

TEST(MemoryOrders, InputsAndViewsAreCopiedToRequiredOrders) {
  EXPECT_EQ(
      stridesOf("fusion f(%x: f32[m, n]) with m = 4, n = 6 {\n"
                "  %p = permute(%x, axes=[1, 0])\n"
                "  %r = reshape(%x, sizes=[2, 12])\n"
                "  %s = slice(%x, starts=[0, 1], stops=[m, n])\n"
                "  return %x order=[1, 0], %p order=[0, 1], %r order=[1, 0], %s order=[0, 1]\n"
                "}\n"),
      (Strides{{1, 4}, {4, 1}, {1, 2}, {5, 1}}));
}

// %g is gathered, %r is reduced and scattered, %a goes through an all-to-all, %l is local.
TEST(MemoryOrders, CollectivesAndShardedTensorsHaveRequiredOrders) {
  constexpr const char* kText =
      "mesh @m = [x=ranks]\n"
      "fusion f(%x: f32[m, n] shard(@m, 1: x), %w: f32[n, k] shard(@m, 0: x))\n"
      "    with m = 6, n = 12, k = 18 {\n"
      "  %g = exp(%x)\n"
      "  %r = matmul(%x, %w)\n"
      "  %a = set(%x) shard(@m, 0: x)\n"
      "  %l = sin(%x)\n"
      "  %y = matmul(%x, %w)\n"
      "  return %g shard(@m) order=[1, 0], %r shard(@m, 0: x) order=[1, 0], %a order=[1, 0],\n"
      "         %l order=[1, 0], %l order=[0, 1], %y shard(@m) order=[1, 0]\n"
      "}\n";
  for (int ranks : {1, 2, 3}) {
    const int64_t m = 6 / ranks;
    const int64_t n = 12 / ranks;
    EXPECT_EQ(stridesOf(kText, ranks), (Strides{{1, 6}, {1, m}, {1, m}, {1, 6}, {n, 1}, {1, 6}}))
        << ranks << " ranks";
  }
}

TEST(MemoryOrders, BuilderRequiresOrdersPerOutput) {
  FusionBuilder b("f");
  const ValueId x = b.input("x", DType::F32, {Size(4), Size(6)});
  const ValueId e = b.pointwise("exp", {x});
  b.output(e);
  b.output(e, AxisOrder{0, 1});
  b.setStrideOrder(0, {1, 0});
  EXPECT_EQ(stridesOf(std::move(b).build(), 1), (Strides{{1, 4}, {6, 1}}));
}

constexpr const char* kNhwc =
    "fusion f(%x: f32[n, 6, h, w] order=[0, 2, 3, 1], %y: f32[6], %z: f32[n, 6, h, w])\n"
    "    with n = 2, h = 4, w = 5 {\n"
    "  %b = broadcast(%y, axes=[0, 2, 3])\n"
    "  %p = add(%b, %x)\n"
    "  %q = mul(%p, %z)\n"
    "  %norm = softmax(%x, axis=1)\n"
    "  %pool = mean(%x, axes=[2, 3], keepdim=true)\n"
    "  %rows = max(%x, axes=[0])\n"
    "  %c = cat(%p, %q, axis=1)\n"
    "  %flat = reshape(%p, sizes=[n, 6, h*w])\n"
    "  %groups = reshape(%p, sizes=[n, 2, 3, h, w])\n"
    "  %e = exp(%groups)\n"
    "  return %p, %q, %norm, %pool, %rows, %c, %flat, %e\n"
    "}\n";

TEST(MemoryOrders, NhwcInputsGiveNhwcResults) {
  EXPECT_EQ(stridesOf(kNhwc), (Strides{{120, 1, 30, 6},
                                       {120, 1, 30, 6},
                                       {120, 1, 30, 6},
                                       {6, 1, 1, 1},
                                       {1, 30, 6},
                                       {240, 1, 60, 12},
                                       {120, 1, 6},
                                       {120, 3, 1, 30, 6}}));
}

TEST(MemoryOrders, SkippedPassGivesRowMajorResults) {
  const Fusion fusion = parseFusion(std::string("heddle 1\n") + kNhwc);
  CompileOptions options;
  options.passes.skip = {"inferOrders"};
  const Program program = compile(fusion, 1, options);
  const SizeBindings sizes = testing::defaultSizes(fusion.size_defaults);
  EXPECT_EQ(outputDesc(program, 0, sizes, 0, 1).strides, (std::vector<int64_t>{120, 20, 5, 1}));
}

// A declared order counts on several ranks too.
TEST(MemoryOrders, ShardedNhwcInputsGiveNhwcResults) {
  const std::string text =
      "mesh @m = [x=ranks]\n"
      "fusion f(%x: f32[n, 6, h] order=[0, 2, 1] shard(@m, 0: x)) with n = 6, h = 4 {\n"
      "  %y = relu(%x)\n"
      "  %z = sum(%y, axes=[0])\n"
      "  return %y, %z shard(@m)\n"
      "}\n";
  for (int ranks : {2, 3}) {
    EXPECT_EQ(stridesOf(text, ranks).front(), (std::vector<int64_t>{24, 1, 6})) << ranks;
  }
}

// A job of one rank follows the orders in which the caller passes the inputs.
TEST(MemoryOrders, ResultsFollowTheStridesOfARun) {
  const std::unique_ptr<Device> device = makeCpuDevice();
  FusionExecutor executor(parseFusion("heddle 1\nfusion f(%x: f32[m, n]) {\n"
                                      "  %y = exp(%x)\n  return %y, %y order=[0, 1]\n}\n"),
                          {device.get()});
  const HostTensor values = randomTensor(DType::F32, {3, 5}, 1, "x");
  for (const AxisOrder& order : {AxisOrder{1, 0}, AxisOrder{0, 1}}) {
    TensorDesc desc = denseDesc(DType::F32, {3, 5});
    desc.strides = stridesFor(desc.alloc, order);
    const Tensor x = toDevice(*device, device->allocator(), values, desc);
    const Outputs outputs = executor.run({x});
    outputs.wait();
    EXPECT_EQ(std::get<Tensor>(outputs[1]).desc.strides, (std::vector<int64_t>{5, 1}));
    for (size_t i : {0, 1}) {
      const HostTensor got = toHost(*device, std::get<Tensor>(outputs[i]));
      for (int64_t k = 0; k < got.numel(); ++k) {
        EXPECT_NEAR(toDouble(got.at(k)), std::exp(toDouble(values.at(k))), 1e-5);
      }
    }
  }
}

// An axis of stride 0 has no position in the memory order, so the result does not follow it. A
// reshape that merges it with another axis is no view.
TEST(MemoryOrders, ResultsDoNotFollowAxesOfStrideZero) {
  const std::unique_ptr<Device> device = makeCpuDevice();
  FusionExecutor executor(parseFusion("heddle 1\nfusion f(%x: f32[m, n]) {\n  %y = exp(%x)\n"
                                      "  %r = reshape(%x, sizes=[m*n])\n  return %y, %r\n}\n"),
                          {device.get()});
  for (const std::vector<int64_t>& strides :
       {std::vector<int64_t>{0, 1}, std::vector<int64_t>{1, 0}, std::vector<int64_t>{0, 0}}) {
    const HostTensor values = randomTensor(DType::F32, {6}, 1, "x");
    Tensor x = toDevice(*device, device->allocator(), values, denseDesc(DType::F32, {6}));
    x.desc = denseDesc(DType::F32, {3, 5});
    x.desc.strides = strides;
    const Outputs outputs = executor.run({x});
    outputs.wait();
    EXPECT_EQ(std::get<Tensor>(outputs[0]).desc.strides, (std::vector<int64_t>{5, 1}));
    const HostTensor got = toHost(*device, std::get<Tensor>(outputs[0]));
    const HostTensor merged = toHost(*device, std::get<Tensor>(outputs[1]));
    for (int64_t i = 0; i < 15; ++i) {
      const int64_t place = i / 5 * strides[0] + i % 5 * strides[1];
      EXPECT_NEAR(toDouble(got.at(i)), std::exp(toDouble(values.at(place))), 1e-5);
      EXPECT_EQ(toDouble(merged.at(i)), toDouble(values.at(place)));
    }
  }
}

TEST(MemoryOrders, ResidualBlockStoresChannelsLastTensors) {
  const Fusion fusion = testing::fusionExample("residual_block_nhwc.fusion");
  const Strides strides = stridesOf(fusion, 1);
  const std::vector<int64_t> nhwc = {14 * 14 * 32, 1, 14 * 32, 32};
  EXPECT_EQ(strides[0], nhwc);
  EXPECT_EQ(strides[1], nhwc);
}

// The number of ranks, and a fusion in which a collective reads a reshape of a permuted or sliced
// value. The reshape is a view, so the collective reads the memory order of that value.
const struct {
  int ranks;
  const char* text;
} kReshapesForCollectives[] = {
    {2, R"(mesh @a = [x=1]
mesh @b = [x=1] ranks=[1]
fusion f(%x: f32[b, t, h, d] shard(@a), %s: f32[d]) with b = 2, t = 3, h = 4, d = 6 {
  %p = permute(%x, axes=[0, 2, 1, 3])
  %n = mul(%p, %s)
  %q = reshape(%n, sizes=[b, h, t, 2, d / 2])
  %z = set(%q) shard(@b)
  %y = exp(%z)
  return %y
}
)"},
    {3, R"(mesh @a = [x=2]
mesh @b = [x=1] ranks=[2]
fusion f(%a: f32[t, h, d] shard(@a)) with t = 4, h = 4, d = 6 {
  %p = permute(%a, axes=[0, 2, 1])
  %e = exp(%p)
  %q = reshape(%e, sizes=[t, 2, 3, h])
  %z = set(%q) shard(@b)
  return %z
}
)"},
    {4, R"(mesh @a = [x=2]
mesh @b = [x=2] ranks=[2, 3]
fusion f(%a: f32[t, h, d] shard(@a, 0: x)) with t = 4, h = 4, d = 6 {
  %p = permute(%a, axes=[0, 2, 1])
  %e = exp(%p)
  %q = reshape(%e, sizes=[t, 2, 3, h])
  %z = set(%q) shard(@b, 0: x)
  return %z
}
)"},
    {3, R"(mesh @a = [x=2]
mesh @b = [x=1] ranks=[2]
fusion f(%a: f32[t, h, d] order=[0, 2, 1] shard(@a)) with t = 4, h = 4, d = 6 {
  %e = exp(%a)
  %s = slice(%e, starts=[1, 0, 0], stops=[3, h, d])
  %q = reshape(%s, sizes=[2, h, 2, 3])
  %z = set(%q) shard(@b)
  return %z
}
)"},
    {2, R"(mesh @m = [x=ranks]
fusion f(%a: f32[n, c, h, w] order=[0, 2, 3, 1] shard(@m, 0: x)) with n = 4, c = 4, h = 3, w = 5 {
  %r = relu(%a)
  %q = reshape(%r, sizes=[n, c, h*w])
  return %q shard(@m)
}
)"},
    {3, R"(mesh @m = [x=ranks]
fusion f(%a: f32[t, h, d] shard(@m, 0: x)) with t = 4, h = 4, d = 6 {
  %p = permute(%a, axes=[0, 2, 1])
  %e = exp(%p)
  %q = reshape(%e, sizes=[t, 2, 3, h])
  return %q shard(@m)
}
)"},
    {2, R"(mesh @a = [x=2]
fusion f(%x: f32[b, t, h, d] shard(@a, 0: x), %s: f32[d]) with b = 2, t = 3, h = 4, d = 6 {
  %p = permute(%x, axes=[0, 2, 1, 3])
  %n = mul(%p, %s)
  %q = reshape(%n, sizes=[b, h, t, 2, d / 2])
  %z = set(%q) shard(@a)
  %y = exp(%z)
  return %y
}
)"},
    {2, R"(mesh @a = [x=1]
mesh @b = [x=2] ranks=[0, 1]
fusion f(%a: f32[t, h, d] shard(@a)) with t = 4, h = 4, d = 6 {
  %p = permute(%a, axes=[0, 2, 1])
  %e = exp(%p)
  %q = reshape(%e, sizes=[t, 2, 3, h])
  %z = set(%q) shard(@b)
  %y = set(%q) shard(@b, 0: x)
  return %z, %y
}
)"},
    {2, R"(mesh @a = [x=2]
mesh @b = [x=1] ranks=[0]
fusion f(%a: f32[t, h, d] shard(@a, 0: x)) with t = 4, h = 4, d = 6 {
  %p = permute(%a, axes=[0, 2, 1])
  %e = exp(%p)
  %q = reshape(%e, sizes=[t, 2, 3, h])
  %z = set(%q) shard(@b)
  return %z
}
)"},
    {2, R"(mesh @a = [x=1]
mesh @b = [x=1] ranks=[1]
fusion f(%a: f32[t, h, d] order=[1, 0, 2] shard(@a)) with t = 6, h = 4, d = 6 {
  %e = exp(%a)
  %s = slice(%e, starts=[1, 0, 0], stops=[5, h, d])
  %q = reshape(%s, sizes=[4, h, 2, 3])
  %z = set(%q) shard(@b)
  return %z
}
)"},
    {2, R"(mesh @m = [x=2]
fusion f(%a: f32[t, h, d] order=[1, 0, 2] shard(@m, 1: x)) with t = 6, h = 4, d = 6 {
  %e = exp(%a)
  %s = slice(%e, starts=[1, 0, 0], stops=[5, h, d])
  %q = reshape(%s, sizes=[4, h, 2, 3])
  %z = set(%q) shard(@m, 0: x)
  return %z
}
)"},
    {2, R"(mesh @m = [x=2]
fusion f(%a: f32[t, h, d] shard(@m, 0: x)) with t = 4, h = 4, d = 6 {
  %e = exp(%a)
  %p = permute(%e, axes=[0, 2, 1])
  %q = reshape(%p, sizes=[t, 2, 3, h])
  %z = set(%q) shard(@m)
  %y = set(%e) shard(@m, 1: x)
  %w = neg(%y)
  return %z, %w
}
)"},
    {2, R"(mesh @m = [x=2]
fusion f(%a: f32[t, h, d] shard(@m, 0: x)) with t = 4, h = 4, d = 6 {
  %e = exp(%a)
  %p = slice(%e, starts=[0,0,0], stops=[t,h,d])
  %q = reshape(%p, sizes=[t, h, 2, 3])
  %z = set(%q) shard(@m)
  %y = set(%e) shard(@m, 1: x)
  %w = neg(%y)
  return %z, %w
}
)"},
};

TEST(MemoryOrders, CollectivesReadReshapesOfPermutedAndSlicedValues) {
  for (const auto& each : kReshapesForCollectives) {
    SCOPED_TRACE(each.text);
    stridesOf(each.text, each.ranks);
  }
}

}  // namespace
}  // namespace heddle::host::memory_orders_cpu_test
