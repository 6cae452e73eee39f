#include "codegen/emit/plan_kernel.h"

#include <gtest/gtest.h>

#include "codegen/kernel.h"
#include "codegen/plan/analysis.h"
#include "codegen/plan/index_expr.h"
#include "codegen/plan/space.h"
#include "ir/base/error.h"
#include "ir/graph/builder.h"
#include "tests/sanitized.h"

namespace heddle::codegen::planning_test {
namespace {

using Sizes = std::vector<int64_t>;

TEST(IndexExpr, RangesAreTrackedAndConstantsFolded) {
  IndexExpr k = IndexExpr::variable("k", 0, 99);
  IndexExpr n = IndexExpr::parameter("n", 10);
  IndexExpr e = IndexExpr::div(k, n) * IndexExpr::parameter("s", 7) + IndexExpr::mod(k, n);
  EXPECT_EQ(e.str(), "(k / n) * s + k % n");
  EXPECT_EQ(e.lo(), 0);
  EXPECT_EQ(e.hi(), 9 * 7 + 9);
  EXPECT_EQ((k * IndexExpr::constant(1) + IndexExpr::constant(0)).str(), "k");
  EXPECT_EQ((k * IndexExpr::constant(0)).str(), "0");
  IndexExpr huge = IndexExpr::variable("h", 0, INT64_MAX / 2) * IndexExpr::constant(4);
  EXPECT_EQ(huge.hi(), INT64_MAX) << "saturates";
}

Fusion binary(int rank) {
  FusionBuilder b;
  std::vector<Size> sizes;
  for (int i = 0; i < rank; ++i) sizes.push_back(Size::symbol("s" + std::to_string(i)));
  ValueId x = b.input("x", DType::F32, sizes);
  ValueId y = b.input("y", DType::F32, sizes);
  b.output(b.pointwise("add", {x, y}));
  return std::move(b).build();
}

TensorDesc strided(Sizes sizes, Sizes strides) {
  TensorDesc desc = denseDesc(DType::F32, std::move(sizes));
  desc.strides = std::move(strides);
  return desc;
}

Space spaceOf(const Fusion& f, const std::vector<TensorDesc>& in,
              const std::vector<TensorDesc>& out) {
  const Analysis analysis = analyze(f);
  return coalesce(f, analysis, axisExtents(f, analysis, in, out, {}), in, out);
}

TEST(Space, ContiguousTensorsHaveOneAxis) {
  Sizes sizes{2, 3, 4, 5};
  TensorDesc d = denseDesc(DType::F32, sizes);
  EXPECT_EQ(spaceOf(binary(4), {d, d}, {d}).extents, (AxisNumbers{120}));
}

TEST(Space, AxesOfExtentOneAreDropped) {
  TensorDesc d = strided({4, 1, 5}, {5, 999, 1});
  EXPECT_EQ(spaceOf(binary(3), {d, d}, {d}).extents, (AxisNumbers{20}));
}

TEST(Space, ColumnMajorTensorsHaveOneAxis) {
  TensorDesc d = strided({4, 6}, {1, 4});
  EXPECT_EQ(spaceOf(binary(2), {d, d}, {d}).extents, (AxisNumbers{24}));
}

TEST(Space, OutputDecidesTheOrderOfMixedLayouts) {
  TensorDesc rows = denseDesc(DType::F32, {4, 6});
  Space space = spaceOf(binary(2), {rows, strided({4, 6}, {1, 4})}, {rows});
  EXPECT_EQ(space.extents, (AxisNumbers{4, 6}));
  EXPECT_EQ(space.tensors[2].strides, (AxisNumbers{6, 1}));
}

TEST(Space, SumOverLeadingAxesHasTwoAxes) {
  FusionBuilder b;
  ValueId x = b.input("x", DType::F32, {Size::symbol("a"), Size::symbol("b"), Size::symbol("c")});
  b.output(b.reduce("sum", x, {0, 1}));
  Fusion f = std::move(b).build();
  Space space =
      spaceOf(f, {denseDesc(DType::F32, {16, 512, 4096})}, {denseDesc(DType::F32, {4096})});
  EXPECT_EQ(space.kept, 1);
  EXPECT_EQ(space.extents, (AxisNumbers{4096, 8192}));
}

TEST(Space, DisagreeingSizesAreRefused) {
  TensorDesc a = denseDesc(DType::F32, {4});
  TensorDesc b = denseDesc(DType::F32, {5});
  EXPECT_THROW(spaceOf(binary(1), {a, b}, {a}), UserError);
}

TEST(Space, PaddedSizesThatAreNotValidAreRefused) {
  const auto padded = [](int64_t low, int64_t high) {
    FusionBuilder b;
    const ValueId x = b.input("x", DType::F32, {Size::symbol("n")});
    b.output(b.reduce("sum", b.name("y").pad(x, {low}, {high}), {0}));
    spaceOf(std::move(b).build(), {denseDesc(DType::F32, {4})}, {denseDesc(DType::F32, {})});
  };
  EXPECT_NO_THROW(padded(-3, 5));
  EXPECT_THROW(padded(-3, -3), UserError);
  EXPECT_THROW(padded(INT64_MAX, 1), UserError);
  EXPECT_THROW(padded(1, INT64_MAX), UserError);
}

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
}  // namespace heddle::codegen::planning_test
