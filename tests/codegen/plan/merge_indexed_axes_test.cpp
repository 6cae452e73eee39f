// Which axes of a kernel become one axis although ops read elements at computed indices.
#include "codegen/plan/merge_indexed_axes.h"

#include <gtest/gtest.h>

#include "ir/graph/builder.h"

namespace heddle::codegen::merge_indexed_axes_test {
namespace {

using Sizes = std::vector<int64_t>;

constexpr int64_t kRows = 4, kMiddle = 6, kColumns = 10;

Size symbol(const char* name) { return Size::symbol(name); }

// Returns the space of a fusion with one input x of [a, b, c] and one output.
template <class Write>
Space spaceOf(Write&& write, const TensorDesc& x, const Sizes& result) {
  FusionBuilder b;
  const ValueId in = b.input("x", DType::F32, {symbol("a"), symbol("b"), symbol("c")});
  b.output(b.pointwise("neg", {write(b, in)}));
  const Fusion fusion = std::move(b).build();
  const Analysis analysis = analyze(fusion);
  const std::vector<TensorDesc> inputs = {x};
  const std::vector<TensorDesc> outputs = {denseDesc(DType::F32, result)};
  return coalesce(fusion, analysis, axisExtents(fusion, analysis, inputs, outputs, {}), inputs,
                  outputs);
}

const TensorDesc kDense = denseDesc(DType::F32, {kRows, kMiddle, kColumns});

ValueId padRows(FusionBuilder& b, ValueId x) { return b.pad(x, {1, 0, 0}, {2, 0, 0}); }

TEST(MergeIndexedAxes, AxesThatAPadDoesNotChangeBecomeOne) {
  const Space space = spaceOf(padRows, kDense, {kRows + 3, kMiddle, kColumns});
  EXPECT_EQ(space.extents, (AxisNumbers{kRows + 3, kMiddle * kColumns}));
  ASSERT_EQ(space.indexed.size(), 1U);
  EXPECT_EQ(space.indexed[0].extents, (AxisNumbers{kRows, 1, kMiddle * kColumns}));
  EXPECT_EQ(space.indexed[0].strides, (AxisNumbers{kMiddle * kColumns, 0, 1}));
}

TEST(MergeIndexedAxes, AFlippedAxisStays) {
  const Space space = spaceOf([](FusionBuilder& b, ValueId x) { return b.flip(x, {1}); }, kDense,
                              {kRows, kMiddle, kColumns});
  EXPECT_EQ(space.extents, (AxisNumbers{kRows, kMiddle, kColumns}));
}

TEST(MergeIndexedAxes, AnAxisWithAnIotaStays) {
  const auto addIndex = [](FusionBuilder& b, ValueId x) {
    const ValueId index = b.iota({kRows + 3, symbol("b"), symbol("c")}, 2);
    return b.pointwise("add", {padRows(b, x), b.cast(index, DType::F32)});
  };
  const Space space = spaceOf(addIndex, kDense, {kRows + 3, kMiddle, kColumns});
  EXPECT_EQ(space.extents, (AxisNumbers{kRows + 3, kMiddle, kColumns}));
}

TEST(MergeIndexedAxes, AGapBetweenTheRowsOfTheInputKeepsTheAxes) {
  TensorDesc x = kDense;
  x.strides = {kMiddle * (kColumns + 2), kColumns + 2, 1};
  const Space space = spaceOf(padRows, x, {kRows + 3, kMiddle, kColumns});
  EXPECT_EQ(space.extents, (AxisNumbers{kRows + 3, kMiddle, kColumns}));
}

TEST(MergeIndexedAxes, APartOfAShardedAxisStays) {
  TensorDesc x = kDense;
  x.global = {kRows, 2 * kMiddle, kColumns};
  const Space space = spaceOf(padRows, x, {kRows + 3, kMiddle, kColumns});
  EXPECT_EQ(space.extents, (AxisNumbers{kRows + 3, kMiddle, kColumns}));
}

// One op pads the first axis, the other op pads the last axis.
TEST(MergeIndexedAxes, AllOpsMustPermitTheMerge) {
  const auto padTwice = [](FusionBuilder& b, ValueId x) {
    return b.pointwise("add", {b.pad(x, {0, 0, 1}, {0, 0, -1}), b.pad(x, {1, 0, 0}, {-1, 0, 0})});
  };
  const Space space = spaceOf(padTwice, kDense, {kRows, kMiddle, kColumns});
  EXPECT_EQ(space.extents, (AxisNumbers{kRows, kMiddle, kColumns}));
}

// A take of rows: the axes inside of a row become one axis.
TEST(MergeIndexedAxes, AxesInsideOfTakenRowsBecomeOne) {
  FusionBuilder b;
  const ValueId x = b.input("x", DType::F32, {symbol("a"), symbol("b"), symbol("c")});
  const ValueId index = b.input("i", DType::I64, {symbol("n")});
  b.output(b.pointwise("neg", {b.take(x, index, 0)}));
  const Fusion fusion = std::move(b).build();
  const Analysis analysis = analyze(fusion);
  const std::vector<TensorDesc> inputs = {kDense, denseDesc(DType::I64, {7})};
  const std::vector<TensorDesc> outputs = {denseDesc(DType::F32, {7, kMiddle, kColumns})};
  const Space space = coalesce(fusion, analysis, axisExtents(fusion, analysis, inputs, outputs, {}),
                               inputs, outputs);
  EXPECT_EQ(space.extents, (AxisNumbers{7, kMiddle * kColumns}));
}

}  // namespace
}  // namespace heddle::codegen::merge_indexed_axes_test
