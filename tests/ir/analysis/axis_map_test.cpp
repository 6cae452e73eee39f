#include "ir/analysis/axis_map.h"

#include <gtest/gtest.h>

#include <vector>

#include "ir/graph/builder.h"

namespace heddle::axis_map_test {
namespace {

const Size t = Size::symbol("t");
const Size h = Size::symbol("h");

TEST(AxisMap, MatmulContractsItsLastSpaceAxis) {
  FusionBuilder b;
  const ValueId x = b.input("x", DType::F32, {t, h});
  const ValueId w = b.input("w", DType::F32, {h, Size::symbol("f")});
  b.matmul(x, w);
  const AxisMap map = axisMapOf(b.fusion(), b.fusion().exprs().back());
  EXPECT_EQ(map.inputs, (std::vector<std::vector<int>>{{0, 2}, {2, 1}}));
  EXPECT_EQ(map.outputs, (std::vector<std::vector<int>>{{0, 1}}));
  EXPECT_EQ(map.space[2].kind, IterKind::Reduction);
}

TEST(AxisMap, ReshapeKeepsUntouchedAxes) {
  FusionBuilder b;
  const ValueId x = b.input("x", DType::F32, {t, Size(4), Size(6), h});
  b.reshape(x, {t, Size(24), h});
  const AxisMap map = axisMapOf(b.fusion(), b.fusion().exprs().back());
  EXPECT_EQ(map.inputs[0], (std::vector<int>{0, AxisMap::kNone, AxisMap::kNone, 2}));
}

}  // namespace
}  // namespace heddle::axis_map_test
