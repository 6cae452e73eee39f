// Tests combinations of sizes with '?', scalars in sizes, views, memory orders and shardings
// against the reference evaluator.
#include <gtest/gtest.h>

#include "host/compile.h"
#include "host/device/cpu/cpu_device.h"
#include "host/fusion_executor.h"
#include "ir/graph/size_scalars.h"
#include "ir/graph/verify.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"
#include "tests/host/rank_harness.h"

namespace heddle::host::combined_features_cpu_test {
namespace {

struct Case {
  const char* name;
  const char* text;
  int ranks = 1;
};

constexpr Case kCases[] = {
    {"the mean of a matrix product over sharded rows",
     "mesh @g = [x=2]\n"
     "fusion f(%y: f32[a, b] shard(@g, 0: x), %w: f32[c, b]) with a = 4, b = 2, c = 3 {\n"
     "  %l = linear(%y, %w)\n  %m = mean(%l)\n  return %m\n}\n",
     2},
    {"a reshape to -1 of a value whose size is a scalar",
     "fusion f(%k: i64 = 4) {\n  %a = arange(stop=%k, dtype=f32)\n"
     "  %y = reshape(%a, sizes=[2, -1])\n  return %y\n}\n"},
    {"an expand that a kernel stores, repeated",
     "fusion f(%x: f32[3]) {\n  %a = neg(%x)\n  %e = expand(%a, sizes=[2, 3])\n"
     "  %r = repeat(%e, repeats=[2, 1])\n  return %r\n}\n"},
    {"softmax over a padded axis whose widths are sizes",
     "fusion f(%x: f32[c, d]) with c = 5, d = 4 {\n"
     "  %p = pad(%x, lows=[d, 0], highs=[0, 0])\n  %y = softmax(%p, axis=0)\n  return %y\n}\n"},
    {"expand_as of a size that is 1 in this run",
     "fusion f(%x: f32[a?, 1], %y: f32[2, 3]) with a = 1 {\n"
     "  %v = expand_as(%x, %y)\n  return %v\n}\n"},
    {"an expanded axis of one element, sharded over two ranks",
     "mesh @g = [x=2]\n"
     "fusion f(%x: f32[1] shard(@g), %w: f32[4, a] shard(@g, 1: x)) with a = 1 {\n"
     "  %s = mul(%x, 2.0)\n  %e = expand(%s, sizes=[4, a])\n  return %e in %w\n}\n",
     2},
    {"the first 0 elements of a sorted axis of one element",
     "fusion f(%x: f32[c]) with c = 2 {\n  %m = max(%x, axes=[0], keepdim=true)\n"
     "  %v, %i = topk(%m, k=0, axis=0)\n  return %v\n}\n"},
    {"a reshape whose open size becomes a number",
     "fusion f(%x: f32[a, 1], %m: i64? = 1) with a = 1 {\n"
     "  %y = reshape(%x, sizes=[-1, a, %m])\n  return %y\n}\n"},
    {"a reduced axis stored in an input that is sharded along it",
     "mesh @m = [x=3]\n"
     "fusion f(%x: f32[n, k], %q: f32[n, 1] shard(@m, 1: x)) with n = 4, k = 6 {\n"
     "  %s = sum(%x, axes=[1], keepdim=true)\n  return %s in %q\n}\n",
     3},
    {"a gathered input stored in another input that is also reshaped",
     "mesh @m = [x=3]\n"
     "fusion f(%x: f32[n, k] shard(@m, 1: x), %w: f32[n, k] shard(@m)) with n = 33, k = 70 {\n"
     "  %f = reshape(%w, sizes=[n*k])\n  %g = neg(%f)\n  return %x in %w, %g\n}\n",
     3},
    {"attention whose batch size is 1 in this run",
     "fusion f(%q: f32[b?, h, t, d], %k: f32[c, h, t, d]) with b = 1, c = 3, h = 2, t = 3, d = 4 "
     "{\n"
     "  %o = scaled_dot_product_attention(%q, %k, %k)\n  return %o\n}\n"},
};

TEST(CombinedFeatures, ResultsEqualTheReference) {
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.name);
    const Fusion fusion = parseFusion(std::string("heddle 1\n") + one.text);
    verify(fusion);
    EXPECT_TRUE(sameGraph(parseFusion(print(fusion)), fusion));
    testing::HarnessOptions options;
    options.ranks = one.ranks;
    options.sizes = defaultSizes(fusion);
    const std::vector<HostTensor> expected = testing::expectedOf(fusion, options);
    const std::vector<HostTensor> got = testing::runProgram(compile(fusion, one.ranks), options);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(got[i].sizes, expected[i].sizes);
      EXPECT_LE(testing::relativeError(got[i], expected[i]), 1e-5);
    }
  }
}

// The order is required after the statement, or in `return`. A view of the input has gaps.
TEST(CombinedFeatures, DiagonalsHaveTheRequiredOrder) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  for (const char* body : {"  %d = diagonal(%x)\n  return %d order=[0, 1]\n}\n",
                           "  %d = diagonal(%x) order=[0, 1]\n  return %d\n}\n"}) {
    FusionExecutor executor(
        parseFusion(std::string("heddle 1\nfusion f(%x: f32[a, a, b]) {\n") + body),
        {device.get()});
    std::vector<float> values(18);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const Outputs outputs = executor.run({testing::deviceFloats(*device, values, {3, 3, 2})});
    outputs.wait();
    const Tensor& diagonal = std::get<Tensor>(outputs[0]);
    EXPECT_EQ(diagonal.desc.strides, (std::vector<int64_t>{3, 1}));
    EXPECT_EQ(testing::floatsOf(*device, outputs[0]), (std::vector<float>{0, 8, 16, 1, 9, 17}));
  }
}

// With the default of %i, no run of this shape would be valid.
TEST(CombinedFeatures, ValueOfARunReplacesTheDefaultOfAScalar) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  FusionExecutor executor(parseFusion("heddle 1\nfusion f(%x: f32[t, 2], %i: i64 = 9) {\n"
                                      "  %y = select(%x, axis=0, index=%i)\n  %z = neg(%y)\n"
                                      "  return %z\n}\n"),
                          {device.get()});
  const Tensor x = testing::deviceFloats(*device, {0, 1, 2, 3, 4, 5}, {3, 2});
  const Outputs outputs = executor.run({x, Scalar(int64_t{2})});
  outputs.wait();
  EXPECT_EQ(testing::floatsOf(*device, outputs[0]), (std::vector<float>{-4, -5}));
}

// With the default of %k, the new axis does not broadcast. With the value of the run, it does.
TEST(CombinedFeatures, RunDecidesAgainstTheDefaultOfAScalar) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  FusionExecutor executor(
      parseFusion("heddle 1\nfusion f(%x: f32[t], %y: f32[m, h], %k: i64? = 2) {\n"
                  "  %r = reshape(%x, sizes=[%k, -1])\n  %a = add(%r, %y)\n  return %a\n}\n"),
      {device.get()});
  const Tensor x = testing::deviceFloats(*device, {1, 2}, {2});
  const Tensor y = testing::deviceFloats(*device, {10, 20, 30, 40}, {2, 2});
  const Outputs outputs = executor.run({x, y, Scalar(int64_t{1})});
  outputs.wait();
  EXPECT_EQ(testing::floatsOf(*device, outputs[0]), (std::vector<float>{11, 22, 31, 42}));
}

// Whether %k is valid depends on the sizes of %y and %z in the run.
TEST(CombinedFeatures, ProgramIsVerifiedForTheSizesOfTheRun) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  FusionExecutor executor(
      parseFusion("heddle 1\nfusion f(%y: f32[m, h], %z: f32[c], %k: i64) {\n"
                  "  %o = full(1.0, sizes=[%k, h], dtype=f32)\n  %a = add(%o, %y)\n"
                  "  %s = slice(%z, starts=[%k], stops=[%k + 2])\n  %t = neg(%s)\n"
                  "  return %a, %t\n}\n"),
      {device.get()});
  const Outputs outputs = executor.run(
      {testing::deviceFloats(*device, {1, 2, 3, 4}, {2, 2}),
       testing::deviceFloats(*device, {0, 1, 2, 3, 4, 5, 6, 7}, {8}), Scalar(int64_t{2})});
  outputs.wait();
  EXPECT_EQ(testing::floatsOf(*device, outputs[0]), (std::vector<float>{2, 3, 4, 5}));
  EXPECT_EQ(testing::floatsOf(*device, outputs[1]), (std::vector<float>{-2, -3}));
}

}  // namespace
}  // namespace heddle::host::combined_features_cpu_test
