// Tests the text and the launches of kernels that several independent parts share. The tests
// compile nothing.
#include "codegen/families/shared_launch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/emit/plan_kernel.h"
#include "codegen/plan/in_place.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"

namespace heddle::codegen::shared_launch_test {
namespace {

// Returns a segment with one multiplication per part.
Fusion products(size_t parts) {
  std::string inputs;
  std::string body;
  std::string outputs;
  for (size_t i = 0; i < parts; ++i) {
    inputs += fmt::format("{0}%x{1}: f32[n{1}], %y{1}: f32[n{1}]", i > 0 ? ", " : "", i);
    body += fmt::format("%z{0} = mul(%x{0}, %y{0})\n", i);
    outputs += fmt::format("{}%z{}", i > 0 ? ", " : "", i);
  }
  return parseFusion(
      fmt::format("heddle 1\nfusion f({}) {{\n{}return {}\n}}\n", inputs, body, outputs), "f");
}

KernelPlan planOf(const Fusion& fusion, const std::vector<int64_t>& sizes, Target target,
                  std::vector<int32_t> alignments = {}) {
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
  for (int64_t size : sizes) {
    for (int k = 0; k < 2; ++k) inputs.push_back(denseDesc(DType::F32, {size}));
    outputs.push_back(denseDesc(DType::F32, {size}));
  }
  return planKernel(fusion, inputs, outputs, target, alignments);
}

TEST(SharedLaunch, TextDependsOnNoSizes) {
  const Fusion fusion = products(3);
  for (Target target : {Target::Cuda, Target::Cpp}) {
    const KernelPlan first = planOf(fusion, {1000, 64, 7}, target);
    const KernelPlan second = planOf(fusion, {3, 5000011, 1024}, target);
    EXPECT_EQ(first.source.text, second.source.text);
    ASSERT_EQ(first.stages.size(), 1u);
    EXPECT_EQ(second.stages.size(), 1u);
    EXPECT_EQ(first.stages[0].pointers, second.stages[0].pointers);
    EXPECT_NE(first.stages[0].args, second.stages[0].args);
  }
}

TEST(SharedLaunch, TextHasOneBodyForAllParts) {
  const std::vector<int64_t> sizes(200, 1001);
  const KernelPlan few = planOf(products(2), {1001, 1001}, Target::Cuda);
  const KernelPlan many = planOf(products(200), sizes, Target::Cuda);
  EXPECT_LT(many.source.text.size(), few.source.text.size() + 100);
  EXPECT_EQ(many.stages.size(), 1u);
  EXPECT_EQ(many.stages[0].pointers.size(), 600u);
  EXPECT_EQ(many.stages[0].grid, 200);  // 1001 elements are less than one block
}

TEST(SharedLaunch, ArgumentStructsAreLimited) {
  const std::vector<int64_t> sizes(1000, 5);
  const KernelPlan plan = planOf(products(1000), sizes, Target::Cuda);
  ASSERT_GT(plan.stages.size(), 1u);
  int64_t blocks = 0;
  for (const LaunchStage& stage : plan.stages) {
    EXPECT_LE(stage.args.size(), SharedLaunches::kMostArgumentBytes);
    EXPECT_EQ(stage.entry, plan.stages[0].entry);
    EXPECT_EQ(stage.args.size(), plan.stages[0].args.size());
    blocks += stage.grid;
  }
  EXPECT_EQ(blocks, 1000);
  EXPECT_EQ(plan.source.entries.size(), 1u);
  EXPECT_EQ(planOf(products(1000), sizes, Target::Cpp).stages.size(), 1u);
}

// An unaligned part has a body of its own, so the other parts keep their vectors.
TEST(SharedLaunch, UnalignedPartHasItsOwnBody) {
  const KernelPlan plan =
      planOf(products(3), {64, 64, 64}, Target::Cuda, {16, 16, 4, 16, 16, 16, 16, 16, 16});
  EXPECT_EQ(plan.stages.size(), 1u);
  EXPECT_NE(plan.source.text.find("body0_"), std::string::npos);
  EXPECT_NE(plan.source.text.find("body1_"), std::string::npos);
  EXPECT_EQ(plan.source.text.find("body2_"), std::string::npos);
}

TEST(SharedLaunch, OutputMayReplaceAnInputOfItsPartOnly) {
  const Fusion fusion = parseFusion(
      "heddle 1\nfusion f(%x: f32[n], %y: f32[m], %s: f32[]) {\n  %a = mul(%x, %s)\n"
      "  %b = mul(%y, %s)\n  return %a, %b\n}\n",
      "f");
  InPlaceRules rules(fusion);
  EXPECT_EQ(rules.whyNot(0, 0), "");
  EXPECT_EQ(rules.whyNot(1, 1), "");
  EXPECT_EQ(rules.whyNot(0, 1), "another part of the kernel reads %x");
  EXPECT_EQ(rules.whyNot(2, 0), "another part of the kernel reads %s");
}

}  // namespace
}  // namespace heddle::codegen::shared_launch_test
