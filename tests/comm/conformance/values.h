#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "ir/base/dtype.h"
#include "ir/types/sharding.h"

// The inputs of the ranks and the expected reductions, computed without the tested code. The
// numbers are so small that sums and products of up to 8 ranks are exact in every type and in any
// order. Only products in 8-bit integers may wrap around.
namespace heddle::comm::conformance {

inline uint32_t mix(uint32_t rank, uint32_t index) {
  uint32_t bits = rank * 0x9E3779B1u ^ index * 0x85EBCA77u;
  bits ^= bits >> 15;
  bits *= 0x2C1B3C6Du;
  bits ^= bits >> 13;
  return bits;
}

// Returns element `index` of the input of `rank` in a round, which is element `index + round` of
// the input in round 0.
inline double contribution(DType dtype, ReduceOp op, int rank, int64_t index, int round) {
  const uint32_t bits = mix(rank, static_cast<uint32_t>(index + round));
  if (dtype == DType::Bool) return bits % 5 < (op == ReduceOp::Sum || op == ReduceOp::Max ? 1 : 4);
  // Values of i64 are multiples of 2^40, so they need more than 32 bits.
  const double scale = dtype == DType::I64 ? 1099511627776.0 : 1.0;
  const double sign = dtype == DType::U8 ? 1.0 : -1.0;
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Avg:
      return (static_cast<double>(bits % 13) + 6.0 * sign) * scale;
    case ReduceOp::Prod: {
      const double factors[] = {1.0, 2.0, sign, 2.0 * sign};
      return factors[bits % 4];
    }
    case ReduceOp::Min:
    case ReduceOp::Max:  // all values are negative, except in unsigned types
      return sign * (1.0 + bits % 97) * scale;
  }
  return 0.0;
}

// Returns the upper bits of a positive or negative float, rounded to nearest even.
inline uint16_t roundToBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t below = bits & 0xFFFFu;
  uint32_t upper = bits >> 16;
  if (below > 0x8000u || (below == 0x8000u && (upper & 1u))) ++upper;
  return static_cast<uint16_t>(upper);
}

// Returns the bit pattern of the float nearest to `value` in a small float type; ties go to even.
// Requires value >= 0, far below the largest number of the type. `mantissa` is the number of
// mantissa bits, and `bias` is the exponent bias. If rounding gives the next power of two, the sum
// carries into the exponent bits, which is right.
inline uint32_t nearestPattern(double value, int mantissa, int bias) {
  const int exponent = value > 0.0 ? std::max(std::ilogb(value), 1 - bias) : 1 - bias;
  const double steps = std::nearbyint(std::ldexp(value, mantissa - exponent));
  return (static_cast<uint32_t>(exponent + bias - 1) << mantissa) + static_cast<uint32_t>(steps);
}
inline double smallFloat(uint32_t pattern, int mantissa, int bias) {
  const int exponent = static_cast<int>(pattern >> mantissa);
  const double fraction = std::ldexp(pattern & ((1u << mantissa) - 1), -mantissa);
  return exponent == 0 ? std::ldexp(fraction, 1 - bias)
                       : std::ldexp(1.0 + fraction, exponent - bias);
}
inline double f16Value(uint32_t pattern) { return smallFloat(pattern, 10, 15); }
inline double f8e4m3Value(uint32_t pattern) { return smallFloat(pattern, 3, 7); }
inline double f8e5m2Value(uint32_t pattern) { return smallFloat(pattern, 2, 15); }

inline void put(unsigned char* bytes, DType dtype, int64_t index, double value) {
  const auto write = [&](auto element) {
    std::memcpy(bytes + index * static_cast<int64_t>(sizeof element), &element, sizeof element);
  };
  const auto whole = [&] { return static_cast<int64_t>(value); };  // narrower integers wrap around
  const double size = std::fabs(value);
  const uint32_t sign = std::signbit(value) ? 0x8000u : 0;
  switch (dtype) {
    case DType::Bool:
      return write(static_cast<uint8_t>(value != 0.0));
    case DType::U8:
      return write(static_cast<uint8_t>(whole()));
    case DType::I8:
      return write(static_cast<int8_t>(whole()));
    case DType::I32:
      return write(static_cast<int32_t>(whole()));
    case DType::I64:
      return write(whole());
    case DType::F8E4M3:
      return write(static_cast<uint8_t>(sign / 256 + nearestPattern(size, 3, 7)));
    case DType::F8E5M2:
      return write(static_cast<uint8_t>(sign / 256 + nearestPattern(size, 2, 15)));
    case DType::F16:
      return write(static_cast<uint16_t>(sign + nearestPattern(size, 10, 15)));
    case DType::BF16:
      return write(roundToBf16(static_cast<float>(value)));
    case DType::F32:
      return write(static_cast<float>(value));
    case DType::F64:
      return write(value);
  }
}

template <class Value>
void putAll(unsigned char* bytes, DType dtype, int64_t count, const Value& value) {
  for (int64_t i = 0; i < count; ++i) put(bytes, dtype, i, value(i));
}

inline double get(const unsigned char* bytes, DType dtype, int64_t index) {
  const auto read = [&](auto element) {
    std::memcpy(&element, bytes + index * static_cast<int64_t>(sizeof element), sizeof element);
    return element;
  };
  switch (dtype) {
    case DType::Bool:
      return read(uint8_t{});
    case DType::U8:
      return read(uint8_t{});
    case DType::I8:
      return read(int8_t{});
    case DType::I32:
      return read(int32_t{});
    case DType::I64:
      return static_cast<double>(read(int64_t{}));
    case DType::F8E4M3: {
      const uint32_t bits = read(uint8_t{});
      return (bits & 0x80u ? -1.0 : 1.0) * f8e4m3Value(bits & 0x7Fu);
    }
    case DType::F8E5M2: {
      const uint32_t bits = read(uint8_t{});
      return (bits & 0x80u ? -1.0 : 1.0) * f8e5m2Value(bits & 0x7Fu);
    }
    case DType::F16: {
      const uint32_t bits = read(uint16_t{});
      return (bits & 0x8000u ? -1.0 : 1.0) * f16Value(bits & 0x7FFFu);
    }
    case DType::BF16: {
      const uint32_t bits = static_cast<uint32_t>(read(uint16_t{})) << 16;
      float value;
      std::memcpy(&value, &bits, sizeof value);
      return value;
    }
    case DType::F32:
      return read(float{});
    case DType::F64:
      return read(double{});
  }
  return 0.0;
}

// Returns element `index` of the reduction over the ranks of `team`.
inline double reduced(DType dtype, ReduceOp op, const std::vector<int>& team, int64_t index,
                      int round) {
  double result = contribution(dtype, op, team[0], index, round);
  for (size_t i = 1; i < team.size(); ++i) {
    const double next = contribution(dtype, op, team[i], index, round);
    if (op == ReduceOp::Sum || op == ReduceOp::Avg) result += next;
    if (op == ReduceOp::Prod) result *= next;
    if (op == ReduceOp::Min && next < result) result = next;
    if (op == ReduceOp::Max && next > result) result = next;
  }
  if (dtype == DType::Bool && op == ReduceOp::Sum) return result > 0.0;
  if (op != ReduceOp::Avg) return result;
  const double ranks = static_cast<double>(team.size());
  if (dtype == DType::F64) return result / ranks;
  return static_cast<float>(result) / static_cast<float>(ranks);
}

}  // namespace heddle::comm::conformance
