#include "ir/ops/scalar_functions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/erfinv_values.h"

namespace heddle::op_functions::scalar_functions_test {
namespace {

using heddle::testing::kErfinvNearOne;

TEST(ScalarFunctions, ErfinvIsExactNearOne) {
  for (const auto& [exponent, exact] : kErfinvNearOne) {
    const double x = 1 - std::ldexp(1.0, exponent);
    EXPECT_NEAR(erfinv(x), exact, 2 * 0x1p-52 * exact) << "1 - 2^" << exponent;
  }
}

TEST(ScalarFunctions, ErfinvIsOddAndDefinedUpToOne) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_NEAR(erfinv(-0.5), -0.4769362762044699, 1e-15);
  EXPECT_EQ(erfinv(0), 0);
  EXPECT_EQ(erfinv(1), kInf);
  EXPECT_EQ(erfinv(-1), -kInf);
  EXPECT_TRUE(std::isnan(erfinv(1.5)));
  EXPECT_TRUE(std::isnan(erfinv(std::numeric_limits<double>::quiet_NaN())));
}

}  // namespace
}  // namespace heddle::op_functions::scalar_functions_test
