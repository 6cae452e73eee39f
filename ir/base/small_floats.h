#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

// Conversions between f32 and the floats of 8 and 16 bits, for loops over many elements. They have
// no branches, so that a compiler can vectorize the loops. ir/base/dtype.h declares functions for
// single numbers and states the rounding rules, which are the same here.
namespace heddle {

// A float format of `width` bits: a sign bit, an exponent with the bias `bias`, and `mantissa` bits
// of mantissa. A number that is too large becomes `overflow`, which has the bits of infinity, or of
// the largest number if the format has no infinity. `nan` has the bits of a quiet NaN. A
// "magnitude" is the bits of a number without the sign.
struct SmallFloat {
  int width;
  int mantissa;
  int bias;
  uint32_t overflow;
  uint32_t nan;
  bool has_infinity = true;

  constexpr uint32_t from(float value) const {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = bits >> 31 << (width - 1);
    const uint32_t magnitude = bits & 0x7FFFFFFF;
    const uint32_t small = subnormal(magnitude), large = normal(magnitude);
    const uint32_t rounded = std::min(isSubnormal(magnitude) ? small : large, overflow);
    return sign | (magnitude > 0x7F800000 ? nan : rounded);
  }

  constexpr float toFloat(uint32_t bits) const {
    const uint32_t magnitude = bits & ~(1u << (width - 1));
    const uint32_t sign = bits >> (width - 1) << 31;
    const float subnormal = static_cast<float>(static_cast<int32_t>(magnitude)) * smallest();
    const uint32_t small = std::bit_cast<uint32_t>(subnormal);
    const uint32_t large = (magnitude << (23 - mantissa)) + rebias();
    const uint32_t finite = magnitude >> mantissa == 0 ? small : large;
    const uint32_t infinite = magnitude == overflow && has_infinity ? 0x7F800000 : finite;
    return std::bit_cast<float>(sign | (magnitude > overflow ? 0x7FC00000 : infinite));
  }

 private:
  constexpr uint32_t rebias() const { return static_cast<uint32_t>(127 - bias) << 23; }
  constexpr float smallest() const {
    return std::bit_cast<float>(static_cast<uint32_t>(127 + 1 - bias - mantissa) << 23);
  }
  constexpr bool isSubnormal(uint32_t magnitude) const { return magnitude < rebias() + (1u << 23); }

  // Rounds an f32 magnitude that is at least the smallest normal number of the format. The function
  // adds about half a unit in the last place of the result and then drops the low bits. If the
  // lowest kept bit is 0, the function adds slightly less than half a unit, so that a tie rounds
  // down. If the bit is 1, it adds exactly half a unit, so that a tie rounds up. A tie therefore
  // rounds to even.
  constexpr uint32_t normal(uint32_t magnitude) const {
    const int dropped = 23 - mantissa;
    const uint32_t half = (1u << (dropped - 1)) - 1 + (magnitude >> dropped & 1);
    return (magnitude - rebias() + half) >> dropped;
  }

  // Rounds an f32 magnitude below the smallest normal number of the format. The function adds
  // `big`, a float whose unit in the last place is the smallest positive number of the format. The
  // float addition therefore does the rounding.
  constexpr uint32_t subnormal(uint32_t magnitude) const {
    const uint32_t big = static_cast<uint32_t>(127 + 24 - bias - mantissa) << 23;
    const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(big);
    return std::bit_cast<uint32_t>(sum) - big;
  }
};

inline constexpr SmallFloat kF16 = {16, 10, 15, 0x7C00, 0x7E00};
inline constexpr SmallFloat kF8E4M3 = {8, 3, 7, 0x7E, 0x7F, false};
inline constexpr SmallFloat kF8E5M2 = {8, 2, 15, 0x7C, 0x7F};

// The format bf16: the upper half of the bits of an f32.
struct UpperHalf {
  constexpr uint16_t from(float value) const {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = bits + 0x7FFF + (bits >> 16 & 1);
    const bool is_nan = (bits & 0x7FFFFFFF) > 0x7F800000;
    return static_cast<uint16_t>((is_nan ? bits | 0x00400000 : rounded) >> 16);
  }
  constexpr float toFloat(uint16_t bits) const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

inline constexpr UpperHalf kBf16 = {};

}  // namespace heddle
