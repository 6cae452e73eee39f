#include "codegen/plan/index_expr.h"

#include <gtest/gtest.h>

namespace heddle::codegen::index_expr_test {
namespace {

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

}  // namespace
}  // namespace heddle::codegen::index_expr_test
