#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "comm/communicator.h"

namespace heddle::comm::reduce_test {
namespace {

TEST(ReduceOnHost, NanWinsFromEitherSide) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float a[] = {nan, -1.0f}, b[] = {-2.0f, nan};
  const void* sources[] = {a, b};
  for (ReduceOp op : {ReduceOp::Min, ReduceOp::Max, ReduceOp::Sum}) {
    float result[2] = {0.0f, 0.0f};
    reduceOnHost(result, sources, 2, DType::F32, op);
    EXPECT_TRUE(std::isnan(result[0]) && std::isnan(result[1])) << heddle::name(op);
  }
}

TEST(ReduceOnHost, IntegersWrapAround) {
  const int64_t a[] = {std::numeric_limits<int64_t>::max()}, b[] = {1};
  const void* sources[] = {a, b};
  int64_t result = 0;
  reduceOnHost(&result, sources, 1, DType::I64, ReduceOp::Sum);
  EXPECT_EQ(result, std::numeric_limits<int64_t>::min());
}

TEST(ReduceOnHost, ResultMayBeASource) {
  double a[] = {1.0, 2.0}, b[] = {10.0, 20.0};
  const void* sources[] = {a, b};
  reduceOnHost(b, sources, 2, DType::F64, ReduceOp::Sum);
  EXPECT_EQ(b[0], 11.0);
  EXPECT_EQ(b[1], 22.0);
}

}  // namespace
}  // namespace heddle::comm::reduce_test
