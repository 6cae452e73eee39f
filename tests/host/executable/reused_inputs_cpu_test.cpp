// Tests outputs that are stored in the memory of inputs, with FusionExecutor on one rank.
#include <gtest/gtest.h>

#include "host/device/cpu/cpu_device.h"
#include "host/fusion_executor.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"

namespace heddle::host::reused_inputs_cpu_test {
namespace {

using testing::deviceFloats;
using testing::FailingAllocator;
using testing::floatsOf;
using testing::ramp;
using testing::userErrorOf;

struct ReusedInputs : ::testing::Test {
  std::unique_ptr<Device> device = makeCpuDevice({.threads = 2, .adversarial_seed = 7});
  Context context{device.get(), nullptr, nullptr};

  FusionExecutor executorOf(const std::string& text) {
    return FusionExecutor(parseFusion("heddle 1\n" + text, "test"), context);
  }
  Tensor tensor(const std::vector<float>& values, std::vector<int64_t> sizes) {
    return deviceFloats(*device, values, std::move(sizes));
  }
  std::vector<float> valuesOf(const Tensor& t) { return floatsOf(*device, t); }
  std::string errorOf(FusionExecutor& executor, const std::vector<Argument>& inputs,
                      const RunOptions& options = {}) {
    return userErrorOf([&] { executor.run(inputs, options).wait(); });
  }
};

const char* const kMomentum = R"(
fusion momentum(%w: f32[n], %g: f32[n], %m: f32[n]) {
  %m9 = mul(%m, 0.5)
  %m1 = add(%m9, %g)
  %u = mul(%m1, 0.25)
  %w1 = sub(%w, %u)
  return %w1 in! %w, %m1 in! %m
})";

// The valid elements of %w and %g are apart, but %g is in the padding of %w.
TEST_F(ReusedInputs, TensorInThePaddingOfAnotherOneIsAnError) {
  FusionExecutor executor = executorOf(kMomentum);
  const Tensor memory = tensor(ramp(8, 0, 1), {8});
  Tensor w = memory, g = memory;
  w.desc = g.desc = denseDesc(DType::F32, {2});
  w.desc.alloc = {4};
  const Tensor m = tensor({1, 2}, {2});
  g.data = static_cast<float*>(memory.data) + 2;
  EXPECT_EQ(errorOf(executor, {w, g, m}),
            "inputs 0 (%w) and 1 (%g) overlap in memory, and the run updates %w in place");
  g.data = static_cast<float*>(memory.data) + 4;
  EXPECT_EQ(errorOf(executor, {w, g, m}), "");
}

TEST_F(ReusedInputs, CallersTensorsHoldTheResults) {
  FusionExecutor executor = executorOf(kMomentum);
  const size_t n = 1000;
  std::vector<float> w = ramp(n, 1, 0.5f), g = ramp(n, -3, 0.25f), m = ramp(n, 0, 2);
  const Tensor tw = tensor(w, {1000}), tg = tensor(g, {1000}), tm = tensor(m, {1000});
  for (int step = 0; step < 3; ++step) {
    const Outputs outputs = executor.run({tw, tg, tm});
    outputs.wait();
    for (size_t i = 0; i < n; ++i) {
      m[i] = m[i] * 0.5f + g[i];
      w[i] = w[i] - m[i] * 0.25f;
    }
    EXPECT_EQ(valuesOf(tw), w);
    EXPECT_EQ(valuesOf(tm), m);
    EXPECT_EQ(std::get<Tensor>(outputs[0]).data, tw.data);
    EXPECT_EQ(std::get<Tensor>(outputs[1]).data, tm.data);
    EXPECT_EQ(outputs.aliased(0), (AliasedTensor{true, 0}));
    EXPECT_EQ(outputs.aliased(1), (AliasedTensor{true, 2}));
  }
  EXPECT_EQ(valuesOf(tg), g);
  EXPECT_EQ(executor.stats().peak_bytes, 0);
}

TEST_F(ReusedInputs, BuilderStatesTheSameAsTheText) {
  FusionBuilder b("momentum");
  const std::vector<Size> sizes{Size::symbol("n")};
  const ValueId w = b.input("w", DType::F32, sizes);
  const ValueId g = b.input("g", DType::F32, sizes);
  const ValueId m = b.input("m", DType::F32, sizes);
  const ValueId m1 = b.pointwise("add", {b.pointwise("mul", {m, b.constant(0.5)}), g});
  const ValueId w1 = b.pointwise("sub", {w, b.pointwise("mul", {m1, b.constant(0.25)})});
  b.output(w1, OutputReuse{w, true});
  b.output(m1, OutputReuse{m});
  const Fusion built = std::move(b).build();
  EXPECT_TRUE(sameGraph(parseFusion(print(built), "again"), built));
  FusionExecutor executor(built, context);
  const Tensor tw = tensor({8, 8}, {2}), tg = tensor({4, 8}, {2}), tm = tensor({8, 0}, {2});
  executor.run({tw, tg, tm}).wait();
  EXPECT_EQ(valuesOf(tm), (std::vector<float>{8, 8}));
  EXPECT_EQ(valuesOf(tw), (std::vector<float>{6, 6}));
}

TEST_F(ReusedInputs, OldValuesBesideAnUpdateAreKept) {
  FusionExecutor executor = executorOf(R"(
fusion f(%w: f32[n, k], %g: f32[n, k]) {
  %w1 = add(%w, %g)
  %t = permute(%w, axes=[1, 0])
  %s = sum(%w, axes=[1])
  return %w1 in %w, %t, %w, %s
})");
  const Tensor w = tensor({1, 2, 3, 4, 5, 6}, {2, 3}), g = tensor(ramp(6, 10, 0), {2, 3});
  const Outputs outputs = executor.run({w, g});
  outputs.wait();
  EXPECT_EQ(valuesOf(w), (std::vector<float>{11, 12, 13, 14, 15, 16}));
  EXPECT_EQ(floatsOf(*device, outputs[1]), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(floatsOf(*device, outputs[2]), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(floatsOf(*device, outputs[3]), (std::vector<float>{6, 15}));
  EXPECT_EQ(outputs.aliased(1), std::nullopt);
}

TEST_F(ReusedInputs, ExchangeOfTwoInputsIsRight) {
  FusionExecutor executor = executorOf(R"(
fusion f(%a: f32[n], %b: f32[n]) {
  return %a in %b, %b in %a
})");
  const Tensor a = tensor({1, 2, 3}, {3}), b = tensor({4, 5, 6}, {3});
  executor.run({a, b}).wait();
  EXPECT_EQ(valuesOf(a), (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(valuesOf(b), (std::vector<float>{1, 2, 3}));
}

TEST_F(ReusedInputs, ReadsOfOtherElementsSeeTheOldValues) {
  FusionExecutor executor = executorOf(R"(
fusion f(%w: f32[n, n], %i: f32[n, n]) {
  %t = permute(%w, axes=[1, 0])
  %w1 = sub(%w, %t)
  %r = flip(%i, axes=[0])
  %i1 = add(%i, %r)
  return %w1 in %w, %i1 in %i
})");
  const int64_t n = 70;
  const std::vector<float> old = ramp(static_cast<size_t>(n * n), 3, 1);
  const Tensor w = tensor(old, {n, n}), i = tensor(old, {n, n});
  executor.run({w, i}).wait();
  const std::vector<float> new_w = valuesOf(w), new_i = valuesOf(i);
  const auto at = [&](int64_t row, int64_t column) {
    return old[static_cast<size_t>(row * n + column)];
  };
  for (int64_t row = 0; row < n; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      const auto k = static_cast<size_t>(row * n + column);
      ASSERT_EQ(new_w[k], at(row, column) - at(column, row));
      ASSERT_EQ(new_i[k], at(row, column) + at(n - 1 - row, column));
    }
  }
}

// A row reduction reads a row several times before it writes the row. Its sizes select different
// schedules.
TEST_F(ReusedInputs, RowReductionsInPlaceAreRight) {
  for (const int64_t rows : {1, 3, 200}) {
    for (const int64_t columns : {1, 7, 64, 5000}) {
      FusionExecutor executor = executorOf(R"(
fusion f(%w: f32[n, k]) {
  %s = sum(%w, axes=[1], keepdim=true)
  %w1 = sub(%w, %s)
  %m = amax(%w1, axes=[1], keepdim=true)
  %w2 = sub(%w1, %m)
  return %w2 in! %w, %w1
})");
      std::vector<float> x(static_cast<size_t>(rows * columns));
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7 % 11);
      const Tensor w = tensor(x, {rows, columns});
      executor.run({w}).wait();
      const std::vector<float> got = valuesOf(w);
      for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
        const float* line = x.data() + row * static_cast<size_t>(columns);
        const float most = *std::max_element(line, line + columns);
        for (size_t c = 0; c < static_cast<size_t>(columns); ++c) {
          // The sum of the row cancels. It is exact, because all values are small integers.
          ASSERT_EQ(got[row * static_cast<size_t>(columns) + c], line[c] - most)
              << rows << "x" << columns;
        }
      }
    }
  }
}

// A kernel that reduces a gradient also updates the parameter. It reads the moment once per element
// of the result, after the reduction. The sizes select reductions in one and in two launches.
TEST_F(ReusedInputs, UpdatesAfterReductionsAreRight) {
  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {3, 700}, {700, 3}, {64, 64}, {200000, 2}, {2, 200000}}) {
    for (const int64_t axis : {0, 1}) {
      FusionExecutor executor = executorOf(fmt::format(R"(
fusion f(%x: f32[n, k], %m: f32[{}]) {{
  %g = sum(%x, axes=[{}])
  %m2 = mul(%m, 2.0)
  %m1 = add(%m2, %g)
  return %m1 in! %m, %g
}})",
                                                       axis == 0 ? "k" : "n", axis));
      const int64_t kept = axis == 0 ? columns : rows;
      const Tensor x = tensor(ramp(static_cast<size_t>(rows * columns), 1, 0), {rows, columns});
      const Tensor m = tensor(ramp(static_cast<size_t>(kept), 0, 1), {kept});
      executor.run({x, m}).wait();
      const std::vector<float> got = valuesOf(m);
      const auto sum = static_cast<float>(axis == 0 ? rows : columns);
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i], 2 * static_cast<float>(i) + sum) << rows << "x" << columns;
      }
    }
  }
}

TEST_F(ReusedInputs, InputsWithGapsAndInAnyOrderAreUpdated) {
  FusionExecutor executor = executorOf(R"(
fusion f(%w: f32[n, k], %g: f32[n, k]) {
  %w1 = sub(%w, %g)
  %t = matmul(%w1, %w1)
  return %w1 in %w, %t
})");
  const Tensor memory = tensor(ramp(16, 0, 1), {16});
  const Tensor g = tensor({1, 1, 1, 1}, {2, 2});
  Tensor w = memory;
  w.desc = denseDesc(DType::F32, {2, 2});
  w.desc.strides = {1, 4};  // elements 0, 4, 1, 5
  executor.run({w, g}).wait();
  EXPECT_EQ(valuesOf(memory),
            (std::vector<float>{-1, 0, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
}

TEST_F(ReusedInputs, FailedAllocationsLeaveTheInputsUnchanged) {
  FusionExecutor executor = executorOf(R"(
fusion f(%w: f32[n, n], %g: f32[n, n], %x: f32[n, n]) {
  %w1 = sub(%w, %g)
  %y = matmul(%x, %w1)
  %z = matmul(%y, %w1)
  %s = sum(%z)
  %x1 = add(%x, %z)
  return %w1 in! %w, %s, %x1 in! %x
})");
  FailingAllocator failing(device->allocator());
  RunOptions options;
  options.allocator = &failing;
  const std::vector<float> ones = ramp(16, 1, 0);
  const Tensor w = tensor(ones, {4, 4}), g = tensor(ramp(16, 0.5f, 0), {4, 4});
  const Tensor x = tensor(ones, {4, 4});
  int64_t failures = 0;
  for (;; ++failures) {
    failing.failAt(failures);
    const std::string error = errorOf(executor, {w, g, x}, options);
    if (error.empty()) break;
    EXPECT_NE(error.find("out of memory"), std::string::npos) << error;
    ASSERT_EQ(valuesOf(w), ones) << failures;
    ASSERT_EQ(valuesOf(x), ones) << failures;
  }
  EXPECT_GE(failures, 3);
  EXPECT_EQ(valuesOf(w), ramp(16, 0.5f, 0));
  EXPECT_EQ(valuesOf(x), ramp(16, 5, 0));  // 1 + 4 * (4 * 0.5) * 0.5
}

TEST_F(ReusedInputs, OverlappingInputsAreRefused) {
  FusionExecutor executor = executorOf(kMomentum);
  const Tensor w = tensor(ramp(8, 0, 1), {8}), g = tensor(ramp(8, 0, 1), {8});
  const Tensor m = tensor(ramp(8, 0, 1), {8});
  executor.run({w, g, m}).wait();
  EXPECT_EQ(errorOf(executor, {w, w, m}),
            "inputs 0 (%w) and 1 (%g) overlap in memory, and the run updates %w in place");
  Tensor half = w;
  half.data = static_cast<std::byte*>(w.data) + 16;
  half.desc = denseDesc(DType::F32, {4});
  Tensor first = w, third = m;
  first.desc = third.desc = half.desc;
  EXPECT_EQ(errorOf(executor, {first, half, third}), "");
  first.desc = denseDesc(DType::F32, {4});
  first.data = static_cast<std::byte*>(w.data) + 4;
  EXPECT_EQ(errorOf(executor, {third, half, first}),
            "inputs 1 (%g) and 2 (%m) overlap in memory, and the run updates %m in place");
}

TEST_F(ReusedInputs, ColumnsOfOneMatrixDoNotOverlap) {
  FusionExecutor executor = executorOf(R"(
fusion f(%w: f32[n, k], %g: f32[n, k]) {
  %w1 = sub(%w, %g)
  return %w1 in! %w
})");
  const Tensor memory = tensor(ramp(8, 0, 1), {8});
  Tensor w = memory, g = memory;
  w.desc = denseDesc(DType::F32, {2, 2});
  w.desc.strides = {4, 1};
  g.desc = w.desc;
  g.data = static_cast<std::byte*>(memory.data) + 8;
  EXPECT_EQ(errorOf(executor, {w, g}), "");
  EXPECT_EQ(valuesOf(memory), (std::vector<float>{-2, -2, 2, 3, -2, -2, 6, 7}));
}

TEST_F(ReusedInputs, TensorsThatCannotBeUpdatedAreRefused) {
  FusionExecutor executor = executorOf(kMomentum);
  const Tensor g = tensor(ramp(4, 0, 1), {4}), m = tensor(ramp(4, 0, 1), {4});
  Tensor stretched = tensor({1}, {1});
  stretched.desc = denseDesc(DType::F32, {4});
  stretched.desc.strides = {0};
  EXPECT_NE(errorOf(executor, {stretched, g, m})
                .find("input 0 (%w) is updated in place, so its elements must not overlap, but its "
                      "tensor has the sizes [4] and the strides [0]"),
            std::string::npos);
  RunOptions options;
  options.preallocated = {tensor(ramp(4, 0, 1), {4})};
  EXPECT_EQ(errorOf(executor, {tensor(ramp(4, 0, 1), {4}), g, m}, options),
            "output 0 (%w1) is stored in an input (%w), so it cannot be preallocated");
  FusionExecutor count = executorOf(R"(
fusion f(%n: f32[]) {
  %n1 = add(%n, 1.0)
  return %n1 in %n
})");
  float number = 3;
  const Tensor on_host{&number, denseDesc(DType::F32, {}), nullptr, true};
  EXPECT_NE(errorOf(count, {on_host})
                .find("input 0 (%n) is updated in place, so its tensor must be "
                      "in device memory"),
            std::string::npos);
  const Tensor on_device = tensor({3}, {});
  count.run({on_device}).wait();
  EXPECT_EQ(valuesOf(on_device), (std::vector<float>{4}));
}

TEST_F(ReusedInputs, PreallocatedOutputsThatDoNotFitAreRefused) {
  FusionExecutor executor = executorOf(R"(
fusion f(%x: f32[n, k]) {
  %y = neg(%x) order=[1, 0]
  return %y
})");
  const Tensor x = tensor(ramp(6, 0, 1), {2, 3});
  const auto errorWith = [&](const std::function<void(Tensor&)>& change) {
    RunOptions options;
    options.preallocated = {tensor(ramp(6, 0, 0), {2, 3})};
    options.preallocated[0].desc.strides = {1, 2};
    change(options.preallocated[0]);
    return errorOf(executor, {x}, options);
  };
  EXPECT_EQ(errorWith([](Tensor&) {}), "");
  EXPECT_EQ(errorWith([](Tensor& t) {
              t.desc.strides = {3, 1};
            }),
            "output 0 (%y) must have the memory order [1, 0], its preallocated tensor has the "
            "sizes [2, 3] and the strides [3, 1]");
  EXPECT_EQ(errorWith([](Tensor& t) {
              t.desc.global = {4, 3};
            }),
            "output 0 (%y) has the unsharded sizes [2, 3], its preallocated tensor has [4, 3]");
  EXPECT_EQ(errorWith([](Tensor& t) { t.desc.dtype = DType::I32; }),
            "output 0 (%y) is f32[2, 3], its preallocated tensor is i32[2, 3]");
  EXPECT_EQ(
      errorWith([](Tensor& t) {
        t.desc.strides = {1, 1};
      }),
      "preallocated output 0 (%y): its elements overlap, because it has the sizes [2, 3] and the "
      "strides [1, 1]");
  EXPECT_EQ(errorWith([](Tensor& t) { t.in_host_memory = true; }),
            "preallocated output 0 (%y) is in host memory, expected memory of the device");
}

// The order of the caller's tensor decides which of the outputs is a copy.
TEST_F(ReusedInputs, OutputInAnotherOrderIsACopy) {
  FusionExecutor executor = executorOf(R"(
fusion f(%w: f32[n, m], %x: f32[n, m]) {
  %w1 = add(%w, %x)
  return %w1 in! %w, %w1 order=[1, 0], %w1 order=[0, 1]
})");
  const Tensor x = tensor(ramp(6, 10, 10), {2, 3});
  for (const bool permuted : {false, true}) {
    Tensor w = tensor(permuted ? std::vector<float>{0, 3, 1, 4, 2, 5} : ramp(6, 0, 1), {2, 3});
    if (permuted) w.desc.strides = {1, 2};
    const Outputs outputs = executor.run({w, x});
    outputs.wait();
    EXPECT_EQ(valuesOf(w), ramp(6, 10, 11));
    const Tensor& first = std::get<Tensor>(outputs[1]);
    const Tensor& second = std::get<Tensor>(outputs[2]);
    EXPECT_EQ(valuesOf(first), ramp(6, 10, 11));
    EXPECT_EQ(valuesOf(second), ramp(6, 10, 11));
    EXPECT_EQ(first.desc.strides, (std::vector<int64_t>{1, 2}));
    EXPECT_EQ(second.desc.strides, (std::vector<int64_t>{3, 1}));
    EXPECT_EQ((permuted ? first : second).data, w.data);
    EXPECT_NE((permuted ? second : first).data, w.data);
  }
}

TEST_F(ReusedInputs, EmptyTensorsAreAccepted) {
  FusionExecutor executor = executorOf(kMomentum);
  const Tensor empty = tensor({}, {0});
  const Outputs outputs = executor.run({empty, empty, empty});
  outputs.wait();
  EXPECT_EQ(std::get<Tensor>(outputs[0]).desc.sizes, (std::vector<int64_t>{0}));
}

}  // namespace
}  // namespace heddle::host::reused_inputs_cpu_test
