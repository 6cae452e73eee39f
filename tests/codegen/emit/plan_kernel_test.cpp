#include "codegen/emit/plan_kernel.h"

#include <gtest/gtest.h>

#include "codegen/kernel.h"
#include "codegen/plan/desc_list.h"
#include "ir/graph/builder.h"
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
    EXPECT_FALSE(describeSchedule(f, in, out, target, {}, {}).empty());
  }
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
