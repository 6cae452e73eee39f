#include <gtest/gtest.h>

#include "codegen/emit/plan_kernel.h"
#include "codegen/kernel.h"
#include "codegen/plan/analysis.h"
#include "ir/base/error.h"
#include "ir/graph/builder.h"

namespace heddle::codegen::kernel_legality_test {
namespace {

std::vector<Size> sizes(const std::string& names) {
  std::vector<Size> result;
  for (char c : names) result.push_back(Size::symbol(std::string(1, c)));
  return result;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(KernelLegality, DifferentReducedAxesNeedTwoKernels) {
  FusionBuilder b;
  ValueId x = b.line(2).input("x", DType::F32, sizes("abc"));
  b.output(b.line(4).name("s").reduce("sum", x, {0}));
  b.output(b.line(5).name("m").reduce("max", x, {1}));
  std::string why = whyNotOneKernel(std::move(b).build());
  EXPECT_EQ(why, "sum of %s at line 4 and max of %m at line 5 reduce different axes");
}

TEST(KernelLegality, RowsAndColumnsCanBeOneKernel) {
  FusionBuilder b;
  ValueId x = b.input("x", DType::F32, sizes("abc"));
  b.output(b.reduce("sum", x, {0}));
  b.output(b.pointwise("sub", {x, b.reduce("max", x, {1, 2}, true)}));
  EXPECT_EQ(whyNotOneKernel(std::move(b).build()), "");
}

// A value that depends on sums of columns cannot be combined with the rows in the same sweep.
TEST(KernelLegality, RowsCannotReadColumnsInTheSameKernel) {
  FusionBuilder b;
  ValueId x = b.input("x", DType::F32, sizes("ab"));
  ValueId centered = b.pointwise("sub", {x, b.name("s").reduce("sum", x, {0}, true)});
  b.output(b.pointwise("sub", {centered, b.name("m").reduce("max", x, {1}, true)}));
  EXPECT_TRUE(contains(whyNotOneKernel(std::move(b).build()), "reduce different axes"));
}

// Returns the fusion that subtracts the largest element of each row `count` times.
Fusion repeatedly(int count) {
  FusionBuilder b;
  ValueId x = b.input("x", DType::F32, sizes("ab"));
  for (int i = 0; i < count; ++i) x = b.pointwise("sub", {x, b.reduce("max", x, {1}, true)});
  b.output(x);
  return std::move(b).build();
}

TEST(KernelLegality, KernelsHaveAtMostFourSweeps) {
  EXPECT_EQ(whyNotOneKernel(repeatedly(1)), "");
  EXPECT_EQ(whyNotOneKernel(repeatedly(4)), "");
  EXPECT_TRUE(contains(whyNotOneKernel(repeatedly(5)), "would be sweep 5 over the data"));
}

// The second sweep reduces only the expanded maximum, which is in no tensor in memory.
TEST(KernelLegality, SweepMayReadAGeneratedValueAlone) {
  FusionBuilder b;
  ValueId x = b.input("x", DType::F32, sizes("ab"));
  ValueId most = b.reduce("max", x, {1}, true);
  ValueId wide = b.expand(most, sizes("ab"));
  ValueId sum = b.line(7).name("s").reduce("sum", wide, {1}, true);
  b.output(b.pointwise("sub", {b.pointwise("sub", {x, wide}), sum}));
  EXPECT_EQ(whyNotOneKernel(std::move(b).build()), "");
}

TEST(KernelLegality, ReductionOfAReductionNeedsTwoKernels) {
  FusionBuilder b;
  ValueId x = b.input("x", DType::F32, sizes("ab"));
  b.output(b.reduce("sum", b.reduce("max", x, {1}), {0}));
  EXPECT_FALSE(whyNotOneKernel(std::move(b).build()).empty());
}

TEST(KernelLegality, UnrelatedIterationSpacesAreParts) {
  FusionBuilder b;
  b.output(b.pointwise("neg", {b.input("x", DType::F32, sizes("a"))}));
  b.output(b.pointwise("neg", {b.input("y", DType::F32, sizes("b"))}));
  EXPECT_EQ(whyNotOneKernel(std::move(b).build()), "");
}

TEST(KernelLegality, EachPartMustBeLegal) {
  FusionBuilder b;
  b.output(b.pointwise("neg", {b.input("x", DType::F32, sizes("a"))}));
  ValueId y = b.input("y", DType::F32, sizes("b"));
  b.output(b.pointwise("add", {b.broadcast(y, {0}), b.broadcast(y, {1})}));
  EXPECT_TRUE(contains(whyNotOneKernel(std::move(b).build()), "two different axes"));
}

TEST(KernelLegality, DifferentIterationSpacesOfOneInputNeedTwoKernels) {
  FusionBuilder b;
  ValueId x = b.input("x", DType::F32, sizes("a"));
  ValueId y = b.input("y", DType::F32, sizes("b"));
  b.output(b.pointwise("add", {b.broadcast(x, {1}), b.broadcast(y, {0})}));
  b.output(b.pointwise("neg", {x}));
  EXPECT_TRUE(contains(whyNotOneKernel(std::move(b).build()), "spans only 1 of the 2 axes"));
}

TEST(KernelLegality, ValueAlongTwoAxesIsRefused) {
  FusionBuilder b;
  ValueId x = b.input("x", DType::F32, sizes("a"));
  b.output(b.pointwise("add", {b.broadcast(x, {0}), b.broadcast(x, {1})}));
  EXPECT_TRUE(contains(whyNotOneKernel(std::move(b).build()), "two different axes"));
}

// An axis of one element does not keep values out of the same kernel.
TEST(KernelLegality, AxesOfOneElementAreIgnored) {
  FusionBuilder b;
  ValueId row = b.input("row", DType::F32, {Size(1), Size::symbol("b")});
  ValueId x = b.input("x", DType::F32, sizes("ab"));
  b.output(b.pointwise("add", {row, x}));
  EXPECT_EQ(whyNotOneKernel(std::move(b).build()), "");
}

// No operand of the kernel has the expanded axis.
TEST(KernelLegality, ExpandedAxisMayBeReduced) {
  FusionBuilder b;
  ValueId x = b.input("x", DType::F32, {Size::symbol("a"), Size(1)});
  b.output(b.reduce("sum", b.expand(x, sizes("an")), {1}));
  EXPECT_EQ(whyNotOneKernel(std::move(b).build()), "");
}

TEST(KernelLegality, ViewsAreNotKernels) {
  FusionBuilder b;
  ValueId x = b.input("x", DType::F32, sizes("ab"));
  b.output(b.permute(x, {1, 0}));
  EXPECT_TRUE(contains(whyNotOneKernel(std::move(b).build()), "is a view"));
}

TEST(KernelLegality, PlanKernelReportsTheReason) {
  const Fusion f = repeatedly(5);
  TensorDesc desc = denseDesc(DType::F32, {2, 3});
  try {
    planKernel(f, {desc}, {desc}, Target::Cpp);
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_TRUE(contains(e.what(), "sweep 5 over the data")) << e.what();
  }
}

}  // namespace
}  // namespace heddle::codegen::kernel_legality_test
