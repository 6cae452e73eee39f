// Checks every bit pattern and every rounding of the small floats. Also checks integer conversions
// and dtype promotion.
#include "ir/base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/base/error.h"
#include "ir/ops/op.h"

namespace heddle::dtype_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Describes a float format. The test computes the value of each bit pattern from these fields.
struct Format {
  DType dtype;
  int bits;
  int mantissa;
  int bias;
  bool has_infinity;
  float (*decode)(uint32_t);
  uint32_t (*encode)(float);
};

const Format kFormats[] = {
    {DType::F16, 16, 10, 15, true,
     [](uint32_t bits) { return floatFromF16(static_cast<uint16_t>(bits)); },
     [](float value) -> uint32_t { return f16FromFloat(value); }},
    {DType::BF16, 16, 7, 127, true,
     [](uint32_t bits) { return floatFromBf16(static_cast<uint16_t>(bits)); },
     [](float value) -> uint32_t { return bf16FromFloat(value); }},
    {DType::F8E4M3, 8, 3, 7, false,
     [](uint32_t bits) { return floatFromF8e4m3(static_cast<uint8_t>(bits)); },
     [](float value) -> uint32_t { return f8e4m3FromFloat(value); }},
    {DType::F8E5M2, 8, 2, 15, true,
     [](uint32_t bits) { return floatFromF8e5m2(static_cast<uint8_t>(bits)); },
     [](float value) -> uint32_t { return f8e5m2FromFloat(value); }},
};

// Returns the value of a bit pattern without its sign bit.
double valueOf(const Format& format, uint32_t magnitude) {
  const int exponent = static_cast<int>(magnitude >> format.mantissa);
  const uint32_t field = magnitude & ((1u << format.mantissa) - 1);
  const int highest = (1 << (format.bits - 1 - format.mantissa)) - 1;
  if (format.has_infinity && exponent == highest) return field == 0 ? kInf : std::nan("");
  if (!format.has_infinity && magnitude == (1u << (format.bits - 1)) - 1) return std::nan("");
  const double fraction = std::ldexp(field, -format.mantissa);
  return exponent == 0 ? std::ldexp(fraction, 1 - format.bias)
                       : std::ldexp(1 + fraction, exponent - format.bias);
}

TEST(DType, EveryBitPatternDecodesToTheValueOfItsFields) {
  for (const Format& format : kFormats) {
    const uint32_t sign = 1u << (format.bits - 1);
    for (uint32_t pattern = 0; pattern < 2 * sign; ++pattern) {
      const double value = valueOf(format, pattern % sign);
      const double got = format.decode(pattern);
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(got)) << name(format.dtype) << " " << pattern;
        ASSERT_TRUE(std::isnan(format.decode(format.encode(static_cast<float>(got)))));
        continue;
      }
      ASSERT_EQ(got, pattern < sign ? value : -value) << name(format.dtype) << " " << pattern;
      ASSERT_EQ(std::signbit(got), pattern >= sign);
      ASSERT_EQ(format.encode(static_cast<float>(got)), pattern) << name(format.dtype);
    }
  }
}

// A value between two neighbours rounds to the nearer one, and a value in the middle rounds to the
// even one. The test checks the middle and the two f32 values next to it, because they decide how
// all other values round.
TEST(DType, EncodingRoundsToNearestEven) {
  for (const Format& format : kFormats) {
    const uint32_t sign = 1u << (format.bits - 1);
    for (uint32_t low = 0; std::isfinite(valueOf(format, low)); ++low) {
      const double below = valueOf(format, low);
      double above = valueOf(format, low + 1);
      // If `above` is infinite or NaN, rounding uses the number that would follow `below` with the
      // same step.
      if (!std::isfinite(above)) above = 2 * below - valueOf(format, low - 1);
      const auto middle = static_cast<float>((below + above) / 2);
      // Skips the middle if no f32 has this value, which happens for bf16.
      if (static_cast<double>(middle) != (below + above) / 2) continue;
      const uint32_t even = low % 2 == 0 ? low : low + 1;
      // A format without infinity keeps its largest number.
      const uint32_t next = std::isnan(valueOf(format, low + 1)) ? low : low + 1;
      for (uint32_t minus : {0u, sign}) {
        const float factor = minus == 0 ? 1.0f : -1.0f;
        ASSERT_EQ(format.encode(factor * middle), minus | even) << name(format.dtype) << middle;
        ASSERT_EQ(format.encode(factor * std::nextafter(middle, 0.0f)), minus | low);
        ASSERT_EQ(format.encode(factor * std::nextafter(middle, HUGE_VALF)), minus | next);
      }
    }
  }
}

TEST(DType, OverflowGivesInfinityOrTheLargestNumber) {
  for (float value : {449.0f, 464.0f, 464.1f, 480.0f, 1e30f, HUGE_VALF}) {
    EXPECT_EQ(f8e4m3FromFloat(value), 0x7E) << value;
    EXPECT_EQ(f8e4m3FromFloat(-value), 0xFE) << value;
  }
  for (float value : {61440.0f, 65536.0f, 1e30f, HUGE_VALF}) {
    EXPECT_EQ(f8e5m2FromFloat(value), 0x7C) << value;
    EXPECT_EQ(f8e5m2FromFloat(-value), 0xFC) << value;
  }
  for (float value : {65520.0f, 65536.0f, 1e30f, HUGE_VALF}) {
    EXPECT_EQ(f16FromFloat(value), 0x7C00) << value;
    EXPECT_EQ(f16FromFloat(-value), 0xFC00) << value;
  }
  EXPECT_EQ(f16FromFloat(65519.0f), 0x7BFF);
  EXPECT_EQ(f8e5m2FromFloat(61439.0f), 0x7B);
  for (const Format& format : kFormats) {
    EXPECT_TRUE(std::isnan(format.decode(format.encode(std::nanf("")))));
    EXPECT_EQ(format.encode(1e-30f), format.dtype == DType::BF16 ? 0x0DA2u : 0u);
    EXPECT_EQ(format.encode(-0.0f), 1u << (format.bits - 1));
  }
}

// The expected values are the results of torch.promote_types; "-" is an error. PyTorch promotes u8
// with i8 to i16, which heddle does not have.
TEST(DType, PromotionMatchesPyTorch) {
  const std::vector<std::vector<const char*>> table = {
      {"bool", "u8", "i8", "i32", "i64", "-", "-", "f16", "bf16", "f32", "f64"},
      {"u8", "u8", "i32", "i32", "i64", "-", "-", "f16", "bf16", "f32", "f64"},
      {"i8", "i32", "i8", "i32", "i64", "-", "-", "f16", "bf16", "f32", "f64"},
      {"i32", "i32", "i32", "i32", "i64", "-", "-", "f16", "bf16", "f32", "f64"},
      {"i64", "i64", "i64", "i64", "i64", "-", "-", "f16", "bf16", "f32", "f64"},
      {"-", "-", "-", "-", "-", "f8e4m3", "-", "-", "-", "-", "-"},
      {"-", "-", "-", "-", "-", "-", "f8e5m2", "-", "-", "-", "-"},
      {"f16", "f16", "f16", "f16", "f16", "-", "-", "f16", "f32", "f32", "f64"},
      {"bf16", "bf16", "bf16", "bf16", "bf16", "-", "-", "f32", "bf16", "f32", "f64"},
      {"f32", "f32", "f32", "f32", "f32", "-", "-", "f32", "f32", "f32", "f64"},
      {"f64", "f64", "f64", "f64", "f64", "-", "-", "f64", "f64", "f64", "f64"}};
  for (size_t a = 0; a < table.size(); ++a) {
    for (size_t b = 0; b < table.size(); ++b) {
      std::string got = "-";
      try {
        got = name(promote(kAllDTypes[a], kAllDTypes[b]));
      } catch (const UserError& error) {
        EXPECT_NE(std::string(error.what()).find("have no common type"), std::string::npos);
      }
      EXPECT_EQ(got, table[a][b]) << name(kAllDTypes[a]) << ", " << name(kAllDTypes[b]);
    }
  }
}

// A scalar changes the dtype of the result only if its category is higher than the category of
// every tensor. The order is bool, integer, float.
TEST(DType, ScalarsPromoteByCategory) {
  const auto result = [](DType tensor, DType scalar) {
    const OperandType operands[] = {{tensor, OperandKind::Tensor},
                                    {scalar, OperandKind::HostScalar}};
    return promoteOperands(operands);
  };
  EXPECT_EQ(result(DType::U8, DType::I64), DType::U8);
  EXPECT_EQ(result(DType::I32, DType::F64), DType::F32);
  EXPECT_EQ(result(DType::F16, DType::F64), DType::F16);
  EXPECT_EQ(result(DType::F16, DType::I64), DType::F16);
  EXPECT_EQ(result(DType::Bool, DType::I64), DType::I64);
}

// Tensors have priority over 0-d tensors, and 0-d tensors over scalars. An operand of lower
// priority changes the dtype of the result only if its category is higher. The order of categories
// is bool, integer, float. tests/goldens/promotion.py tests all pairs.
TEST(DType, ZeroDimTensorsPromoteByCategory) {
  const auto result = [](DType tensor, DType point, DType scalar) {
    const OperandType operands[] = {{scalar, OperandKind::HostScalar},
                                    {point, OperandKind::ZeroDim},
                                    {tensor, OperandKind::Tensor}};
    return promoteOperands(operands);
  };
  EXPECT_EQ(result(DType::F16, DType::F64, DType::F64), DType::F16);
  EXPECT_EQ(result(DType::I8, DType::I64, DType::I64), DType::I8);
  EXPECT_EQ(result(DType::I8, DType::F64, DType::F64), DType::F64);
  EXPECT_EQ(result(DType::I8, DType::BF16, DType::F64), DType::BF16);
  EXPECT_EQ(result(DType::I8, DType::I64, DType::F64), DType::F32);
  EXPECT_EQ(result(DType::Bool, DType::U8, DType::I64), DType::U8);
  EXPECT_EQ(result(DType::Bool, DType::Bool, DType::I64), DType::I64);
}

TEST(DType, FloatsSaturateAndIntegersWrapInIntegerTypes) {
  struct Case {
    DType dtype;
    double low, high;
  };
  for (const Case& c : {Case{DType::U8, 0, 255}, Case{DType::I8, -128, 127},
                        Case{DType::I32, -2147483648.0, 2147483647.0}}) {
    for (double value : {c.high + 0.5, c.high + 1, 1e30, kInf}) {
      EXPECT_EQ(roundTo(c.dtype, value), Scalar(static_cast<int64_t>(c.high))) << value;
    }
    for (double value : {c.low - 0.5, c.low - 1, -1e30, -kInf}) {
      EXPECT_EQ(roundTo(c.dtype, value), Scalar(static_cast<int64_t>(c.low))) << value;
    }
    EXPECT_EQ(roundTo(c.dtype, 2.9), Scalar(int64_t{2}));
    EXPECT_EQ(roundTo(c.dtype, std::nan("")), Scalar(int64_t{0}));
    const auto high = static_cast<int64_t>(c.high);
    EXPECT_EQ(roundTo(c.dtype, high), Scalar(high));
    EXPECT_EQ(roundTo(c.dtype, high + 1), Scalar(static_cast<int64_t>(c.low)));
    EXPECT_EQ(roundTo(c.dtype, static_cast<int64_t>(c.low) - 1), Scalar(high));
    EXPECT_EQ(identityOf(ReduceOp::Max, c.dtype), Scalar(static_cast<int64_t>(c.low)));
    EXPECT_EQ(identityOf(ReduceOp::Min, c.dtype), Scalar(high));
    EXPECT_EQ(identityOf(ReduceOp::Prod, c.dtype), Scalar(int64_t{1}));
  }
  EXPECT_EQ(roundTo(DType::I8, -2.9), Scalar(int64_t{-2}));
  EXPECT_EQ(roundTo(DType::I64, 0x1p63), Scalar(INT64_MAX));
  EXPECT_EQ(roundTo(DType::I64, -0x1p63), Scalar(INT64_MIN));
  // The integer is 2^54 + 2^30 + 1, slightly above the middle between two f32 numbers. If it were
  // first converted to double, the 1 would be lost, and the middle would round down.
  EXPECT_EQ(roundTo(DType::F32, (int64_t{1} << 54) + (int64_t{1} << 30) + 1),
            Scalar(static_cast<double>((int64_t{1} << 54) + (int64_t{1} << 31))));
}

TEST(DType, ElementsOfEveryTypeRoundTripThroughMemory) {
  for (DType dtype : kAllDTypes) {
    int64_t memory[4] = {-1, -1, -1, -1};
    storeElement(memory, dtype, 1, int64_t{1});
    EXPECT_EQ(loadElement(memory, dtype, 1), dtype == DType::Bool ? Scalar(true)
                                             : isFloat(dtype)     ? Scalar(1.0)
                                                                  : Scalar(int64_t{1}));
    const auto* bytes = reinterpret_cast<const unsigned char*>(memory);
    for (int64_t i = 0; i < 32; ++i) {
      const bool own = i >= sizeOf(dtype) && i < 2 * sizeOf(dtype);
      EXPECT_TRUE(own || bytes[i] == 0xFF) << name(dtype) << " wrote byte " << i;
    }
    EXPECT_EQ(dtypeFromName(name(dtype)), dtype);
  }
}

}  // namespace
}  // namespace heddle::dtype_test
