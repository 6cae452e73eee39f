// Tests outputs that are views of a value which is stored in the memory of an input.
#include <gtest/gtest.h>

#include "host/device/cpu/cpu_device.h"
#include "host/fusion_executor.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"

namespace heddle::host::updated_views_cpu_test {
namespace {

using testing::deviceFloats;
using testing::floatsOf;
using testing::ramp;
using testing::userErrorOf;

struct UpdatedViews : ::testing::Test {
  std::unique_ptr<Device> device = makeCpuDevice({.threads = 2, .adversarial_seed = 7});

  FusionExecutor executorOf(const std::string& text) {
    return FusionExecutor(parseFusion("heddle 1\n" + text, "test"), {device.get()});
  }
  Tensor tensor(const std::vector<float>& values, std::vector<int64_t> sizes) {
    return deviceFloats(*device, values, std::move(sizes));
  }
  std::vector<float> valuesOf(const Argument& t) { return floatsOf(*device, t); }
};

const char* const kUpdate = R"(
fusion f(%w: f32[a, b], %i: i64) {
  %w1 = add(%w, 10.0)
  %v = permute(%w1, axes=[1, 0])
  %row = slice(%w1, starts=[%i, 0], stops=[%i + 1, b])
  %s = sum(%w1, axes=[0])
  return %w1 in! %w, %v, %row, %s, %w1
})";

TEST_F(UpdatedViews, OutputsAreViewsOfTheInput) {
  FusionExecutor executor = executorOf(kUpdate);
  const Tensor w = tensor({1, 2, 3, 4, 5, 6}, {2, 3});
  for (int step = 1; step <= 3; ++step) {
    const int64_t i = step % 2;
    const Outputs outputs = executor.run({w, Scalar(i)});
    outputs.wait();
    const auto at = [&](int n) { return static_cast<float>(n + 10 * step); };
    EXPECT_EQ(valuesOf(w), (std::vector<float>{at(1), at(2), at(3), at(4), at(5), at(6)}));
    EXPECT_EQ(valuesOf(outputs[1]), (std::vector<float>{at(1), at(4), at(2), at(5), at(3), at(6)}));
    EXPECT_EQ(valuesOf(outputs[2]), ramp(3, at(i == 0 ? 1 : 4), 1));
    EXPECT_EQ(valuesOf(outputs[3]), ramp(3, at(1) + at(4), 2));
    EXPECT_EQ(valuesOf(outputs[4]), valuesOf(w));
    for (const size_t output : {0, 1, 2, 4}) {
      EXPECT_EQ(outputs.aliased(output), (AliasedTensor{true, 0})) << output;
    }
    EXPECT_EQ(std::get<Tensor>(outputs[1]).data, w.data);
    EXPECT_EQ(std::get<Tensor>(outputs[1]).desc.strides, (std::vector<int64_t>{1, 3}));
    EXPECT_EQ(std::get<Tensor>(outputs[2]).data, static_cast<float*>(w.data) + 3 * i);
  }
  EXPECT_EQ(executor.stats().plans, 1);
  EXPECT_EQ(executor.stats().peak_bytes, 12);  // only the sums
}

// The caller's tensor has gaps. The views then have gaps as well.
TEST_F(UpdatedViews, InputWithGapsGivesViewsWithGaps) {
  FusionExecutor executor = executorOf(R"(
fusion f(%w: f32[a, b]) {
  %w1 = mul(%w, 2.0)
  %v = permute(%w1, axes=[1, 0])
  return %w1 in! %w, %v
})");
  const Tensor memory = tensor({1, 2, -1, -1, 3, 4, -1, -1}, {2, 4});
  Tensor w = memory;
  w.desc = denseDesc(DType::F32, {2, 2});
  w.desc.strides = {4, 1};
  const Outputs outputs = executor.run({w});
  outputs.wait();
  EXPECT_EQ(valuesOf(memory), (std::vector<float>{2, 4, -1, -1, 6, 8, -1, -1}));
  EXPECT_EQ(std::get<Tensor>(outputs[1]).desc.strides, (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(valuesOf(outputs[1]), (std::vector<float>{2, 6, 4, 8}));
}

TEST_F(UpdatedViews, PreallocatedViewGetsACopy) {
  FusionExecutor executor = executorOf(kUpdate);
  const Tensor w = tensor({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor mine = tensor(ramp(6, 0, 0), {3, 2});
  RunOptions options;
  options.preallocated = {Tensor(), mine};
  executor.run({w, Scalar(int64_t{0})}, options).wait();
  EXPECT_EQ(valuesOf(mine), (std::vector<float>{11, 14, 12, 15, 13, 16}));
}

// The output %v has the old values, so heddle copies it. Errors name it as the user does.
TEST_F(UpdatedViews, ErrorNamesTheViewOfTheOldValues) {
  FusionExecutor executor = executorOf(R"(
fusion f(%w: f32[a, b]) {
  %v = permute(%w, axes=[1, 0])
  %w1 = add(%w, 10.0)
  return %w1 in! %w, %v
})");
  const Tensor w = tensor({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto errorWith = [&](const Tensor& memory, const std::vector<int64_t>& sizes) {
    RunOptions options;
    options.preallocated = {Tensor(), memory};
    options.preallocated[1].desc = denseDesc(DType::F32, sizes);
    return userErrorOf([&] { executor.run({w}, options).wait(); });
  };
  EXPECT_EQ(errorWith(w, {3, 2}), "preallocated output 1 (%v) overlaps the memory of input 0 (%w)");
  const Tensor mine = tensor(ramp(6, 0, 0), {3, 2});
  EXPECT_EQ(errorWith(mine, {2, 3}),
            "output 1 (%v) is f32[3, 2], its preallocated tensor is f32[2, 3]");
  EXPECT_EQ(errorWith(mine, {3, 2}), "");
  EXPECT_EQ(valuesOf(mine), (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

// The user requires another memory order of the view than it has in the memory of the input.
TEST_F(UpdatedViews, RequiredOrderIsHonoured) {
  FusionExecutor executor = executorOf(R"(
fusion f(%w: f32[a, b]) {
  %w1 = add(%w, 10.0)
  %v = permute(%w1, axes=[1, 0])
  return %w1 in %w, %v order=[0, 1]
})");
  const Tensor dense = tensor({1, 2, 3, 4, 5, 6}, {2, 3});
  Tensor columns = tensor({1, 4, 2, 5, 3, 6}, {2, 3});  // the same matrix, in columns
  columns.desc.strides = {1, 2};
  for (const Tensor& w : {dense, columns}) {
    const Outputs outputs = executor.run({w});
    outputs.wait();
    EXPECT_EQ(valuesOf(w), (std::vector<float>{11, 12, 13, 14, 15, 16}));
    EXPECT_EQ(valuesOf(outputs[1]), (std::vector<float>{11, 14, 12, 15, 13, 16}));
    EXPECT_EQ(std::get<Tensor>(outputs[1]).desc.strides, (std::vector<int64_t>{2, 1}));
  }
}

}  // namespace
}  // namespace heddle::host::updated_views_cpu_test
