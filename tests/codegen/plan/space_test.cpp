#include "codegen/plan/space.h"

#include <gtest/gtest.h>

#include "codegen/plan/analysis.h"
#include "ir/base/error.h"
#include "ir/graph/builder.h"
#include "tests/codegen/binary_fusion.h"

namespace heddle::codegen::space_test {
namespace {

using testing::binary;
using Sizes = std::vector<int64_t>;

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

}  // namespace
}  // namespace heddle::codegen::space_test
