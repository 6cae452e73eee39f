// Tests preallocated outputs in other memory orders than the program prefers. The program writes
// them directly, so a run allocates no memory. The expected values are computed by loops.
#include <gtest/gtest.h>

#include "host/device/cpu/cpu_device.h"
#include "host/fusion_executor.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"
#include "tests/host/on_ranks.h"

namespace heddle::host::preallocated_layouts_cpu_test {
namespace {

using testing::deviceFloats;
using testing::floatsOf;
using testing::onRanks;
using testing::ramp;

using testing::userErrorOf;
using Sizes = std::vector<int64_t>;

class PreallocatedLayouts : public ::testing::Test {
 protected:
  FusionExecutor executorOf(const std::string& text) {
    return {parseFusion("heddle 1\n" + text), {device_.get()}};
  }

  // Returns a tensor of zeros with these strides, and memory for all elements and gaps.
  Tensor zeros(const Sizes& sizes, const Sizes& strides) {
    Tensor tensor;
    tensor.desc = denseDesc(DType::F32, sizes);
    tensor.desc.strides = strides;
    Tensor memory =
        deviceFloats(*device_, std::vector<float>(static_cast<size_t>(tensor.desc.allocElements())),
                     {tensor.desc.allocElements()});
    memory.desc = tensor.desc;
    return memory;
  }

  // Runs with the preallocated tensors, checks that they are the outputs, and returns the largest
  // number of bytes that the run allocated.
  int64_t peakOf(FusionExecutor& executor, const std::vector<Argument>& inputs,
                 const std::vector<Tensor>& preallocated) {
    TrackingAllocator tracking(device_->allocator());
    RunOptions options;
    options.allocator = &tracking;
    options.preallocated = preallocated;
    const Outputs outputs = executor.run(inputs, options);
    outputs.wait();
    for (size_t i = 0; i < preallocated.size(); ++i) {
      if (preallocated[i].data == nullptr) continue;
      EXPECT_EQ(std::get<Tensor>(outputs[i]).data, preallocated[i].data);
    }
    return tracking.peakBytes();
  }

  std::unique_ptr<Device> device_ = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
};

std::vector<float> negated(std::vector<float> values) {
  for (float& value : values) value = -value;
  return values;
}

// %x is stored by columns, so the program prefers columns for %y. The caller wants rows.
TEST_F(PreallocatedLayouts, HintIsNotBinding) {
  FusionExecutor executor = executorOf(
      "fusion f(%x: f32[n, k]) {\n"
      "  %y = neg(%x)\n  return %y\n}\n");
  Tensor x = zeros({3, 4}, {1, 3});
  const Tensor rows = deviceFloats(*device_, ramp(12, 0, 1), {4, 3});  // x[i, j] = 3 * j + i
  x.data = rows.data;
  std::vector<float> expected;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 4; ++j) expected.push_back(-static_cast<float>(3 * j + i));
  }
  for (const Sizes& strides : {Sizes{1, 3}, Sizes{4, 1}, Sizes{8, 2}, Sizes{1, 5}}) {
    const Tensor y = zeros({3, 4}, strides);
    EXPECT_EQ(peakOf(executor, {x}, {y}), 0) << str(strides);
    EXPECT_EQ(floatsOf(*device_, Argument(y)), expected) << str(strides);
  }
  EXPECT_EQ(executor.stats().programs, 1);
}

// The second kernel reads the first output, and the third output is a transposed view of it.
TEST_F(PreallocatedLayouts, ReadersAndViewsFollowTheCaller) {
  FusionExecutor executor = executorOf(
      "fusion f(%x: f32[n, k], %w: f32[k, m]) {\n"
      "  %y = neg(%x)\n  %p = matmul(%y, %w)\n"
      "  %t = permute(%y, axes=[1, 0])\n"
      "  return %p, %t\n}\n");
  const Tensor x = deviceFloats(*device_, ramp(6, 0, 1), {2, 3});
  const Tensor w = deviceFloats(*device_, ramp(6, 1, 1), {3, 2});
  const Tensor p = zeros({2, 2}, {1, 2}), t = zeros({3, 2}, {2, 1});
  EXPECT_EQ(peakOf(executor, {x, w}, {p, t}), 0);
  EXPECT_EQ(floatsOf(*device_, Argument(p)), (std::vector<float>{-13, -16, -40, -52}));
  EXPECT_EQ(floatsOf(*device_, Argument(t)), (std::vector<float>{0, -3, -1, -4, -2, -5}));
}

TEST_F(PreallocatedLayouts, ReductionsAndCatsFollowTheCaller) {
  FusionExecutor executor = executorOf(
      "fusion f(%x: f32[n, k, l]) {\n"
      "  %s = sum(%x, axes=[1])\n  %a = neg(%x)\n"
      "  %b = mul(%x, 2.0)\n  %c = cat(%a, %b, axis=1)\n"
      "  return %s, %c\n}\n");
  const Tensor x = deviceFloats(*device_, ramp(12, 0, 1), {2, 3, 2});
  const Tensor s = zeros({2, 2}, {1, 2}), c = zeros({2, 6, 2}, {1, 2, 12});
  EXPECT_EQ(peakOf(executor, {x}, {s, c}), 0);
  EXPECT_EQ(floatsOf(*device_, Argument(s)), (std::vector<float>{6, 9, 24, 27}));
  std::vector<float> expected;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 12; ++j) {
      expected.push_back(j < 6 ? -static_cast<float>(6 * i + j)
                               : 2 * static_cast<float>(6 * i + j - 6));
    }
  }
  EXPECT_EQ(floatsOf(*device_, Argument(c)), expected);
}

// A reshape of %y needs row-major memory, so %y is computed in rows and copied.
TEST_F(PreallocatedLayouts, ViewThatRegroupsAxesKeepsTheOrder) {
  FusionExecutor executor = executorOf(
      "fusion f(%x: f32[n, k]) {\n"
      "  %y = neg(%x)\n  %f = reshape(%y, sizes=[n*k])\n"
      "  return %y, %f\n}\n");
  const Tensor x = deviceFloats(*device_, ramp(6, 0, 1), {2, 3});
  const Tensor y = zeros({2, 3}, {1, 2});
  EXPECT_EQ(peakOf(executor, {x}, {y}), 24);
  EXPECT_EQ(floatsOf(*device_, Argument(y)), negated(ramp(6, 0, 1)));
}

TEST_F(PreallocatedLayouts, RequiredOrdersStayRequired) {
  FusionExecutor executor = executorOf(
      "fusion f(%x: f32[n, k]) {\n"
      "  %y = neg(%x) order=[1, 0]\n"
      "  %t = permute(%y, axes=[1, 0])\n  return %y, %t\n}\n");
  const Tensor x = deviceFloats(*device_, ramp(6, 0, 1), {2, 3});
  RunOptions options;
  options.preallocated = {zeros({2, 3}, {3, 1})};
  EXPECT_NE(userErrorOf([&] { executor.run({x}, options); }).find("memory order [1, 0]"),
            std::string::npos);
  options.preallocated = {Tensor{}, zeros({3, 2}, {1, 3})};  // would make %y row-major
  const Outputs outputs = executor.run({x}, options);
  outputs.wait();
  EXPECT_EQ(std::get<Tensor>(outputs[0]).desc.strides, (Sizes{1, 2}));
  EXPECT_EQ(floatsOf(*device_, outputs[1]), (std::vector<float>{0, -3, -1, -4, -2, -5}));
}

// A kernel writes %y directly. An allgather writes %g and needs its rows outermost, so %g is
// copied.
TEST_F(PreallocatedLayouts, RanksWriteWhatNoCollectiveNeeds) {
  const Fusion fusion = parseFusion(
      "heddle 1\nmesh @m = [x=ranks]\nfusion f(%x: f32[n, k] shard(@m, 0: x)) {\n"
      "  %y = neg(%x)\n  %g = mul(%x, 2.0) shard(@m)\n  return %y, %g\n}\n");
  const auto errors = onRanks(2, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    FusionExecutor executor(fusion, {device.get(), &world});
    const float first = 6 * static_cast<float>(world.rank());
    Tensor x = deviceFloats(*device, ramp(6, first, 1), {2, 3});
    x.desc.global = {4, 3};
    Tensor y = deviceFloats(*device, ramp(6, 0, 0), {2, 3});
    y.desc.global = {4, 3};
    y.desc.strides = {1, 2};
    Tensor g = deviceFloats(*device, ramp(12, 0, 0), {4, 3});
    g.desc.strides = {1, 4};
    RunOptions options;
    options.preallocated = {y, g};
    const Outputs outputs = executor.run({x}, options);
    outputs.wait();
    EXPECT_EQ(floatsOf(*device, Argument(y)), ramp(6, -first, -1));
    EXPECT_EQ(floatsOf(*device, Argument(g)), ramp(12, 0, 2));
    world.barrier();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

}  // namespace
}  // namespace heddle::host::preallocated_layouts_cpu_test
