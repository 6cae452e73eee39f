// Conversions between f32 and the floats of 8 and 16 bits.
#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/dtype.h"

namespace heddle {
namespace {

// A format of 1 sign bit, then the exponent with `bias`, then `mantissa` bits. `overflow` is what a
// magnitude becomes that is too large: the pattern of infinity, or where there is none the largest.
struct SmallFloat {
  int width;
  int mantissa;
  int bias;
  uint32_t overflow;
  uint32_t nan;
  bool has_infinity = true;

  uint32_t from(float value) const {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = bits >> 31 << (width - 1);
    const uint32_t magnitude = bits & 0x7FFFFFFF;
    if (std::isnan(value)) return sign | nan;
    return sign |
           std::min(isSubnormal(magnitude) ? subnormal(magnitude) : normal(magnitude), overflow);
  }

  float toFloat(uint32_t bits) const {
    const uint32_t magnitude = bits & ~(1u << (width - 1));
    const uint32_t sign = bits >> (width - 1) << 31;
    if (magnitude == overflow && has_infinity) return std::bit_cast<float>(sign | 0x7F800000);
    if (magnitude > overflow) return std::bit_cast<float>(sign | 0x7FC00000);
    const float value = magnitude >> mantissa == 0
                            ? static_cast<float>(magnitude) * smallest()
                            : std::bit_cast<float>((magnitude << (23 - mantissa)) + rebias());
    return sign != 0 ? -value : value;
  }

 private:
  uint32_t rebias() const { return static_cast<uint32_t>(127 - bias) << 23; }
  float smallest() const {
    return std::bit_cast<float>(static_cast<uint32_t>(127 + 1 - bias - mantissa) << 23);
  }
  bool isSubnormal(uint32_t magnitude) const { return magnitude < rebias() + (1u << 23); }

  // Half a unit less a little, and a little more when the last bit kept is 1: a tie goes to even.
  uint32_t normal(uint32_t magnitude) const {
    const int dropped = 23 - mantissa;
    const uint32_t half = (1u << (dropped - 1)) - 1 + (magnitude >> dropped & 1);
    return (magnitude - rebias() + half) >> dropped;
  }

  // Added to a float whose unit in the last place is the format's smallest number, the value is
  // rounded by the addition.
  uint32_t subnormal(uint32_t magnitude) const {
    const uint32_t big = static_cast<uint32_t>(127 + 24 - bias - mantissa) << 23;
    const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(big);
    return std::bit_cast<uint32_t>(sum) - big;
  }
};

constexpr SmallFloat kF16 = {16, 10, 15, 0x7C00, 0x7E00};
constexpr SmallFloat kF8E4M3 = {8, 3, 7, 0x7E, 0x7F, false};
constexpr SmallFloat kF8E5M2 = {8, 2, 15, 0x7C, 0x7F};

}  // namespace

uint16_t bf16FromFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x0040);
  const uint32_t rounding = 0x7FFF + ((bits >> 16) & 1);
  return static_cast<uint16_t>((bits + rounding) >> 16);
}

float floatFromBf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t f16FromFloat(float value) { return static_cast<uint16_t>(kF16.from(value)); }
float floatFromF16(uint16_t bits) { return kF16.toFloat(bits); }
uint8_t f8e4m3FromFloat(float value) { return static_cast<uint8_t>(kF8E4M3.from(value)); }
float floatFromF8e4m3(uint8_t bits) { return kF8E4M3.toFloat(bits); }
uint8_t f8e5m2FromFloat(float value) { return static_cast<uint8_t>(kF8E5M2.from(value)); }
float floatFromF8e5m2(uint8_t bits) { return kF8E5M2.toFloat(bits); }

}  // namespace heddle
