// Compares counts of NaN and infinity with the values of the elements.
#include "host/run/numerics/bad_elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace heddle::host::bad_elements_test {
namespace {

// Returns a tensor that contains every value of a type of one or two bytes.
std::vector<std::byte> allValues(DType dtype) {
  const int64_t bytes = sizeOf(dtype);
  const int64_t count = int64_t{1} << (8 * bytes);
  std::vector<std::byte> memory(static_cast<size_t>(count * bytes));
  for (int64_t i = 0; i < count; ++i) std::memcpy(memory.data() + i * bytes, &i, bytes);
  return memory;
}

TEST(BadElements, EveryValueOfTheShortTypesIsCounted) {
  for (const DType dtype : {DType::F8E4M3, DType::F8E5M2, DType::F16, DType::BF16}) {
    const std::vector<std::byte> memory = allValues(dtype);
    const int64_t count = static_cast<int64_t>(memory.size()) / sizeOf(dtype);
    int64_t nan = 0;
    int64_t infinite = 0;
    int64_t first = -1;
    for (int64_t i = 0; i < count; ++i) {
      const double value = std::get<double>(loadElement(memory.data(), dtype, i));
      nan += std::isnan(value) ? 1 : 0;
      infinite += std::isinf(value) ? 1 : 0;
      if (first < 0 && !std::isfinite(value)) first = i;
    }
    const BadElements bad = countBad(memory.data(), denseDesc(dtype, {count}));
    EXPECT_EQ(bad.elements, count) << name(dtype);
    EXPECT_EQ(bad.nan, nan) << name(dtype);
    EXPECT_EQ(bad.infinite, infinite) << name(dtype);
    EXPECT_EQ(bad.first, std::vector<int64_t>{first}) << name(dtype);
  }
}

template <class Float>
BadElements countOf(const std::vector<Float>& values, DType dtype) {
  return countBad(reinterpret_cast<const std::byte*>(values.data()),
                  denseDesc(dtype, {static_cast<int64_t>(values.size())}));
}

template <class Float>
void expectSpecialValues(DType dtype) {
  using Limits = std::numeric_limits<Float>;
  const BadElements bad = countOf<Float>(
      {0, -Limits::max(), Limits::denorm_min(), -Limits::infinity(), Limits::quiet_NaN(),
       Limits::signaling_NaN(), -Limits::quiet_NaN(), Limits::infinity(), 1},
      dtype);
  EXPECT_EQ(bad.nan, 3);
  EXPECT_EQ(bad.infinite, 2);
  EXPECT_EQ(bad.first, std::vector<int64_t>{3});
}

TEST(BadElements, SpecialValuesOfTheLongTypesAreCounted) {
  expectSpecialValues<float>(DType::F32);
  expectSpecialValues<double>(DType::F64);
}

// The memory between the elements contains NaN, which does not count.
TEST(BadElements, GapsAreSkippedAndIndicesFollowTheAxes) {
  std::vector<float> memory(64, std::numeric_limits<float>::quiet_NaN());
  TensorDesc desc = denseDesc(DType::F32, {3, 2, 4});
  desc.strides = {2, 30, 7};
  for (int64_t a = 0; a < 3; ++a) {
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t c = 0; c < 4; ++c) memory[static_cast<size_t>(2 * a + 30 * b + 7 * c)] = 1;
    }
  }
  const auto* start = reinterpret_cast<const std::byte*>(memory.data());
  EXPECT_EQ(countBad(start, desc).count(), 0);
  memory[2 * 2 + 30 + 7] = std::numeric_limits<float>::infinity();
  memory[2 + 30 + 3 * 7] = std::numeric_limits<float>::infinity();
  const BadElements bad = countBad(start, desc);
  EXPECT_EQ(bad.infinite, 2);
  EXPECT_EQ(bad.first, (std::vector<int64_t>{1, 1, 3}));
  EXPECT_EQ(describe(bad), "2 of 24 elements (0 NaN, 2 infinite), the first at [1, 1, 3]");
}

TEST(BadElements, TensorsWithoutAxesOrElementsAreCounted) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto* memory = reinterpret_cast<const std::byte*>(&nan);
  EXPECT_EQ(describe(countBad(memory, denseDesc(DType::F32, {}))),
            "1 of 1 element (1 NaN, 0 infinite)");
  EXPECT_EQ(countBad(nullptr, denseDesc(DType::F32, {4, 0})).elements, 0);
  EXPECT_EQ(countBad(Scalar(std::nan(""))).nan, 1);
  EXPECT_EQ(countBad(Scalar(-INFINITY)).infinite, 1);
  EXPECT_EQ(countBad(Scalar(int64_t{1} << 62)).count(), 0);
}

}  // namespace
}  // namespace heddle::host::bad_elements_test
