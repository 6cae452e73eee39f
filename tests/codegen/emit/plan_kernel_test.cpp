#include "codegen/emit/plan_kernel.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codegen/kernel.h"
#include "codegen/plan/desc_list.h"
#include "ir/graph/builder.h"
#include "ir/text/fusion_text.h"
#include "tests/codegen/binary_fusion.h"
#include "tests/sanitized.h"

namespace heddle::codegen::plan_kernel_test {
namespace {

using testing::binary;

TEST(PlanKernel, SourceDependsOnStructureOnly) {
  Fusion f = binary(2);
  auto source = [&](int64_t m, int64_t n, Target target) {
    TensorDesc d = denseDesc(DType::F32, {m, n});
    return planKernel(f, {d, d}, {d}, target).source.text;
  };
  for (Target target : {Target::Cpp, Target::Cuda}) {
    EXPECT_EQ(source(4096, 1024, target), source(2048, 4096, target));
    EXPECT_FALSE(source(4096, 1024, target).empty());
  }
}

TEST(PlanKernel, IndexWidthFollowsLocalSizes) {
  Fusion f = binary(1);
  auto text = [&](int64_t n) {
    TensorDesc d = denseDesc(DType::F32, {n});
    d.global = {n * 64};
    return planKernel(f, {d, d}, {d}, Target::Cuda).source.text;
  };
  EXPECT_NE(text(1 << 28).find("typedef int Index"), std::string::npos);
  EXPECT_NE(text(int64_t{1} << 33).find("typedef long long Index"), std::string::npos);
}

TEST(PlanKernel, EmptyOutputsLaunchNothing) {
  FusionBuilder b;
  ValueId x = b.input("x", DType::F32, {Size::symbol("a"), Size::symbol("b")});
  b.output(b.reduce("sum", x, {0}));
  Fusion f = std::move(b).build();
  for (Target target : {Target::Cpp, Target::Cuda}) {
    std::vector<TensorDesc> in{denseDesc(DType::F32, {1 << 20, 0})};
    std::vector<TensorDesc> out{denseDesc(DType::F32, {0})};
    EXPECT_TRUE(planKernel(f, in, out, target).stages.empty());
    EXPECT_FALSE(describeKernel(f, in, out, target, {}, {}).schedule.empty());
  }
}

size_t countOf(const std::string& part, const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// The device may start a kernel before the writes of the previous kernel of the stream are visible
// (LaunchStage::starts_early), so a kernel must wait before it accesses memory.
TEST(PlanKernel, EveryCudaKernelFirstWaitsForEarlierWork) {
  const auto expectWaits = [](const char* ops, std::vector<TensorDesc> in,
                              std::vector<TensorDesc> out, size_t stages) {
    const Fusion f = parseFusion(fmt::format("heddle 1 fusion f(%x: f32[n, m]) {{ {} }}", ops), "");
    const KernelPlan plan = planKernel(f, in, out, Target::Cuda);
    EXPECT_EQ(plan.stages.size(), stages) << ops;
    for (const LaunchStage& stage : plan.stages) EXPECT_TRUE(stage.starts_early) << ops;
    EXPECT_EQ(countOf("__global__", plan.source.text), stages) << ops;
    EXPECT_EQ(countOf("args) {\n  hd::awaitEarlierWork();\n", plan.source.text), stages) << ops;
    for (const LaunchStage& stage : planKernel(f, in, out, Target::Cpp).stages) {
      EXPECT_FALSE(stage.starts_early) << ops;
    }
  };
  const auto desc = [](std::vector<int64_t> sizes) { return denseDesc(DType::F32, sizes); };
  const TensorDesc x = desc({4096, 1024});
  TensorDesc transposed = x;
  transposed.strides = {1, 4096};
  expectWaits("%y = neg(%x) return %y", {x}, {x}, 1);              // loops
  expectWaits("%y = neg(%x) return %y", {x}, {transposed}, 1);     // squares
  expectWaits("%y = softmax(%x, axis=1) return %y", {x}, {x}, 1);  // rows
  const TensorDesc wide = desc({512, 8192});
  expectWaits("%y = softmax(%x, axis=0) return %y", {wide}, {wide}, 1);       // bundles
  expectWaits("%y = sum(%x, axes=[0]) return %y", {x}, {desc({1024})}, 1);    // loops, divided
  expectWaits("%r = sum(%x, axes=[1]) %c = sum(%x, axes=[0]) return %r, %c",  // columns
              {x}, {desc({4096}), desc({1024})}, 2);
  const TensorDesc rows = desc({64, 1 << 20});
  expectWaits("%y = softmax(%x, axis=1) return %y", {rows}, {rows}, 1);  // divided rows
  const TensorDesc few = desc({4, 1 << 22});
  expectWaits("%y = softmax(%x, axis=1) return %y", {few}, {few}, 2);  // sweeps
  // Two parts that share a launch.
  expectWaits("%a = neg(%x) %i = iota(sizes=[n], axis=0) %b = neg(%i) return %a, %b", {x},
              {x, denseDesc(DType::I64, {4096})}, 1);
}

TEST(PlanKernel, ChainOfTenThousandOpsIsPlanned) {
  FusionBuilder b;
  ValueId x = b.input("x", DType::F32, {Size::symbol("n")});
  for (int i = 0; i < heddle::testing::casesOf(10'000, 1000); ++i) x = b.pointwise("neg", {x});
  b.output(x);
  TensorDesc d = denseDesc(DType::F32, {8});
  EXPECT_EQ(planKernel(std::move(b).build(), {d}, {d}, Target::Cpp).stages.size(), 1u);
}

TEST(PlanKernel, PatchesListPointersAndScalars) {
  FusionBuilder b;
  ValueId x = b.input("x", DType::F32, {Size::symbol("n")});
  ValueId s = b.scalarInput("s", DType::F64);
  b.output(b.pointwise("mul", {x, s}));
  Fusion f = std::move(b).build();
  TensorDesc d = denseDesc(DType::F32, {100});
  KernelPlan plan = planKernel(f, {d, TensorDesc{}}, {d}, Target::Cuda);
  ASSERT_EQ(plan.stages.size(), 1u);
  const LaunchStage& stage = plan.stages[0];
  ASSERT_EQ(stage.pointers.size(), 2u);
  EXPECT_EQ(stage.pointers[0].operand, 0);
  EXPECT_EQ(stage.pointers[1].operand, 2);
  ASSERT_EQ(stage.scalars.size(), 1u);
  EXPECT_EQ(stage.scalars[0].operand, 1);
  EXPECT_EQ(stage.scalars[0].dtype, DType::F64);
  EXPECT_EQ(stage.args.size() % 8, 0u);
}

}  // namespace
}  // namespace heddle::codegen::plan_kernel_test
