// Tests which outputs of two candidates agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "ir/text/fusion_text.h"
#include "tools/tune/compare_outputs.h"

namespace heddle::tools::compare_outputs_cpu_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

HostTensor tensorOf(DType dtype, const std::vector<double>& values) {
  HostTensor tensor(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) {
    tensor.set(static_cast<int64_t>(i), roundTo(dtype, values[i]));
  }
  return tensor;
}

// The tolerance of an output that is computed in its own type.
Tolerance toleranceOf(DType dtype, bool of_float_sums = false) {
  const Fusion segment = parseFusion(fmt::format(
      "heddle 1\nfusion f(%x: {}[n]) {{\n  %y = add(%x, %x)\n  return %y\n}}\n", name(dtype)));
  return {of_float_sums, tolerancesOf(segment).at(0).relative};
}

std::string difference(const HostTensor& got, const HostTensor& wanted) {
  return differenceOf({got}, {wanted}, {toleranceOf(wanted.dtype)});
}

TEST(CompareOutputs, ErrorsAreRelativeToTheLargestElement) {
  const auto differ = [](const std::vector<double>& got, const std::vector<double>& wanted) {
    return !difference(tensorOf(DType::F32, got), tensorOf(DType::F32, wanted)).empty();
  };
  EXPECT_TRUE(differ({2e-5}, {1e-5}));
  EXPECT_FALSE(differ({1.0001e-5}, {1e-5}));
  EXPECT_TRUE(differ({1e-5}, {0}));
  EXPECT_FALSE(differ({100, 1e-5}, {100, 0}));  // a sum of large elements that cancel
  EXPECT_TRUE(differ({1, 1e5}, {1, kInfinity}));
  EXPECT_TRUE(differ({1, kInfinity}, {1, 1e5}));
  EXPECT_TRUE(differ({kInfinity}, {-kInfinity}));
  EXPECT_TRUE(differ({kNan, 1}, {kInfinity, 1}));
  EXPECT_TRUE(differ({kInfinity, 2}, {kInfinity, 1}));
  EXPECT_FALSE(differ({kInfinity, -kInfinity, kNan}, {kInfinity, -kInfinity, kNan}));
}

// A rounding error may change a comparison with a sum of floats, but not the sum of integers.
TEST(CompareOutputs, FewIntegersThatDeriveFromFloatSumsMayDiffer) {
  const Fusion segment = parseFusion(R"(heddle 1
fusion f(%x: f32[n, m], %i: i64[n, m]) {
  %s = sum(%x, axes=[1])
  %e = broadcast(%s, axes=[1])
  %above = gt(%x, %e)
  %most = max(%x, axes=[1])
  %positive = gt(%most, 0)
  %t = sum(%i, axes=[1])
  return %above, %positive, %t
}
)");
  const std::vector<Tolerance> tolerances = tolerancesOf(segment);
  ASSERT_EQ(tolerances.size(), 3u);
  EXPECT_TRUE(tolerances[0].of_float_sums);
  EXPECT_FALSE(tolerances[1].of_float_sums);
  EXPECT_FALSE(tolerances[2].of_float_sums);
  const auto differ = [](DType dtype, size_t count, size_t changed, bool of_sums) {
    std::vector<double> values(count, 0);
    const HostTensor wanted = tensorOf(dtype, values);
    std::fill_n(values.begin(), changed, 1);
    return !differenceOf({tensorOf(dtype, values)}, {wanted}, {toleranceOf(dtype, of_sums)})
                .empty();
  };
  for (const DType dtype : {DType::Bool, DType::I64}) {
    EXPECT_FALSE(differ(dtype, 3, 1, true));
    EXPECT_TRUE(differ(dtype, 3, 2, true));
    EXPECT_FALSE(differ(dtype, 500, 5, true));
    EXPECT_TRUE(differ(dtype, 500, 6, true));
    EXPECT_TRUE(differ(dtype, 500, 1, false));
  }
  EXPECT_TRUE(differ(DType::F32, 500, 1, true));
}

TEST(CompareOutputs, LeastExactTypeOfTheComputedValuesDecidesTheTolerance) {
  const auto relative = [](const std::string& body) {
    return tolerancesOf(parseFusion("heddle 1\nfusion f(%x: f16[n]) {\n" + body + "}\n"))
        .at(0)
        .relative;
  };
  const double exact = relative("  %y = cast(%x, dtype=f64)\n  return %y\n");
  EXPECT_EQ(exact, toleranceOf(DType::F64).relative);
  EXPECT_EQ(relative("  %e = exp(%x)\n  %y = cast(%e, dtype=f64)\n  return %y\n"),
            toleranceOf(DType::F16).relative);
  EXPECT_LT(exact, toleranceOf(DType::F32).relative);
}

TEST(CompareOutputs, HashesTellBitsApartExceptThoseOfNan) {
  const auto hashOf = [](DType dtype, const std::vector<double>& values) {
    return hashOfBits({tensorOf(dtype, values)});
  };
  EXPECT_EQ(hashOf(DType::F32, {1, 2}), hashOf(DType::F32, {1, 2}));
  EXPECT_NE(hashOf(DType::F32, {1, 2}), hashOf(DType::F32, {2, 1}));
  EXPECT_NE(hashOf(DType::F32, {0.0}), hashOf(DType::F32, {-0.0}));
  EXPECT_NE(hashOf(DType::BF16, {1}), hashOf(DType::F16, {1}));
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16}) {
    HostTensor other = tensorOf(dtype, {1, kNan});
    const auto bytes = static_cast<size_t>(other.bytes());
    other.as<std::byte>()[bytes - 1] ^= std::byte{0x80};  // the sign of the NaN
    EXPECT_EQ(hashOfBits({other}), hashOf(dtype, {1, kNan}));
    EXPECT_NE(hashOfBits({other}), hashOf(dtype, {kNan, 1}));
  }
}

TEST(CompareOutputs, DifferencesAreFound) {
  const auto tensor = [](DType dtype, double value) {
    return tensorOf(dtype, std::vector<double>(3, value));
  };
  EXPECT_EQ(difference(tensor(DType::F32, 1), tensor(DType::F32, 1.0001)), "");
  EXPECT_EQ(difference(tensor(DType::F32, kNan), tensor(DType::F32, kNan)), "");
  EXPECT_EQ(
      difference(tensor(DType::F32, 1), tensor(DType::F32, 1.01)),
      "element 0 in the memory of output 0 is 1.0, but 1.0099999904632568 with another candidate");
  EXPECT_NE(difference(tensor(DType::F32, kNan), tensor(DType::F32, 1)), "");
  EXPECT_NE(difference(tensor(DType::I64, 2), tensor(DType::I64, 3)), "");
}

}  // namespace
}  // namespace heddle::tools::compare_outputs_cpu_test
