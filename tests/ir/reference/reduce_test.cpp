// Tests reductions of the reference evaluation against exact sums.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/reference/reference.h"
#include "ir/text/fusion_text.h"

namespace heddle::reduce_test {
namespace {

HostTensor evaluate(const std::string& text, const HostTensor& x) {
  const Fusion fusion = parseFusion(text);
  ReferenceInputs inputs;
  inputs.tensors[fusion.inputs()[0]] = x;
  return evaluateReference(fusion, inputs, {}).at(0);
}

// A plain sum of these numbers has a relative error of 1e-12 or more.
TEST(ReduceReference, LongSumsAreRoundedOnce) {
  constexpr int64_t kCount = 3'000'000;
  HostTensor x(DType::F64, {kCount});
  for (int64_t i = 0; i < kCount; ++i) x.set(i, 0.1);
  const auto exact = static_cast<double>(static_cast<long double>(0.1) * kCount);
  const HostTensor sum =
      evaluate("heddle 1 fusion f(%x: f64[3000000]) { %y = sum(%x) return %y }", x);
  EXPECT_EQ(toDouble(sum.at(0)), exact);
}

TEST(ReduceReference, SumsOfLargeTermsThatCancelAreExact) {
  HostTensor x(DType::F64, {2, 3});
  const double rows[] = {1e20, 3.0, -1e20, -7.0, 1e300, -1e300};
  for (int64_t i = 0; i < 6; ++i) x.set(i, rows[i]);
  const HostTensor sum =
      evaluate("heddle 1 fusion f(%x: f64[2, 3]) { %y = sum(%x, axes=[1]) return %y }", x);
  EXPECT_EQ(toDouble(sum.at(0)), 3);
  EXPECT_EQ(toDouble(sum.at(1)), -7);
}

TEST(ReduceReference, InfinitiesAndNaNsStay) {
  const double inf = std::numeric_limits<double>::infinity();
  HostTensor x(DType::F64, {3, 2});
  const double rows[] = {inf, 1, inf, -inf, std::nan(""), 1};
  for (int64_t i = 0; i < 6; ++i) x.set(i, rows[i]);
  const HostTensor sum =
      evaluate("heddle 1 fusion f(%x: f64[3, 2]) { %y = sum(%x, axes=[1]) return %y }", x);
  EXPECT_EQ(toDouble(sum.at(0)), inf);
  EXPECT_TRUE(std::isnan(toDouble(sum.at(1))));
  EXPECT_TRUE(std::isnan(toDouble(sum.at(2))));
}

// The test computes the expected values with a loop over the elements.
TEST(ReduceReference, EveryAxisOfALongTensorMatchesALoop) {
  HostTensor x(DType::I64, {3, 70000, 2});
  for (int64_t i = 0; i < x.numel(); ++i) x.set(i, i * 7 % 1001 - 500);
  for (const char* axes : {"[0]", "[1]", "[2]", "[0, 1]", "[1, 2]", "[0, 2]", "[0, 1, 2]"}) {
    const std::string list = axes;
    const HostTensor got =
        evaluate("heddle 1 fusion f(%x: i64[3, 70000, 2]) { %y = max(%x, axes=" + list +
                     ", keepdim=true) return %y }",
                 x);
    HostTensor expected(DType::I64, got.sizes);
    for (int64_t i = 0; i < expected.numel(); ++i) expected.set(i, int64_t{-1000});
    for (int64_t i = 0; i < x.numel(); ++i) {
      const int64_t at[] = {i / 140000, i / 2 % 70000, i % 2};
      int64_t to = 0;
      for (size_t axis = 0; axis < 3; ++axis) {
        to = to * got.sizes[axis] + (got.sizes[axis] == 1 ? 0 : at[axis]);
      }
      expected.set(to, std::max(toInt(expected.at(to)), toInt(x.at(i))));
    }
    for (int64_t i = 0; i < expected.numel(); ++i) {
      ASSERT_EQ(toInt(got.at(i)), toInt(expected.at(i))) << axes << " element " << i;
    }
  }
}

}  // namespace
}  // namespace heddle::reduce_test
