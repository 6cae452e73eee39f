#include "ir/ops/scalar_functions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/erfinv_values.h"

namespace heddle::op_functions::scalar_functions_test {
namespace {

using heddle::testing::kErfinvNearOne;

TEST(ScalarFunctions, ErfinvIsExactNearOne) {
  for (const auto& [exponent, exact] : kErfinvNearOne) {
    const double x = 1 - std::ldexp(1.0, exponent);
    EXPECT_NEAR(erfinv(x), exact, 2 * 0x1p-52 * exact) << "1 - 2^" << exponent;
    EXPECT_EQ(erfinv(-x), -erfinv(x));
  }
}

}  // namespace
}  // namespace heddle::op_functions::scalar_functions_test
