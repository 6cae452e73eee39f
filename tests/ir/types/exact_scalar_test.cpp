#include "ir/types/exact_scalar.h"

#include <gtest/gtest.h>

#include <limits>

namespace heddle::exact_scalar_test {
namespace {

bool accepts(DType dtype, const Scalar& value) { return whyNotScalar(dtype, value).empty(); }

TEST(ExactScalar, IntegersTakeIntegersInTheirRange) {
  EXPECT_TRUE(accepts(DType::I32, int64_t{-5}));
  EXPECT_TRUE(accepts(DType::U8, int64_t{255}));
  EXPECT_FALSE(accepts(DType::U8, int64_t{256}));
  EXPECT_FALSE(accepts(DType::U8, int64_t{-1}));
  EXPECT_FALSE(accepts(DType::I64, 3.0));
  EXPECT_FALSE(accepts(DType::I64, true));
  EXPECT_EQ(whyNotScalar(DType::I8, int64_t{200}),
            "is the integer 200, and the type holds -128 to 127");
}

TEST(ExactScalar, FloatsAreRoundedButMustNotOverflow) {
  EXPECT_TRUE(accepts(DType::F32, 0.1));
  EXPECT_TRUE(accepts(DType::F64, 1e300));
  EXPECT_FALSE(accepts(DType::F32, 1e300));
  EXPECT_FALSE(accepts(DType::F16, 1e5));
  EXPECT_TRUE(accepts(DType::F32, std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(accepts(DType::F32, std::numeric_limits<double>::quiet_NaN()));
}

TEST(ExactScalar, FloatsTakeIntegersThatTheyRepresent) {
  EXPECT_TRUE(accepts(DType::F32, int64_t{1} << 24));
  EXPECT_FALSE(accepts(DType::F32, (int64_t{1} << 24) + 1));
  EXPECT_FALSE(accepts(DType::F64, std::numeric_limits<int64_t>::max()));
  EXPECT_FALSE(accepts(DType::F32, true));
}

TEST(ExactScalar, BoolsTakeBools) {
  EXPECT_TRUE(accepts(DType::Bool, false));
  EXPECT_FALSE(accepts(DType::Bool, int64_t{1}));
  EXPECT_FALSE(accepts(DType::Bool, 1.0));
}

}  // namespace
}  // namespace heddle::exact_scalar_test
