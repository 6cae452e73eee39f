#include "ir/base/small_floats.h"

#include "ir/base/dtype.h"

namespace heddle {

uint16_t bf16FromFloat(float value) { return kBf16.from(value); }
float floatFromBf16(uint16_t bits) { return kBf16.toFloat(bits); }
uint16_t f16FromFloat(float value) { return static_cast<uint16_t>(kF16.from(value)); }
float floatFromF16(uint16_t bits) { return kF16.toFloat(bits); }
uint8_t f8e4m3FromFloat(float value) { return static_cast<uint8_t>(kF8E4M3.from(value)); }
float floatFromF8e4m3(uint8_t bits) { return kF8E4M3.toFloat(bits); }
uint8_t f8e5m2FromFloat(float value) { return static_cast<uint8_t>(kF8E5M2.from(value)); }
float floatFromF8e5m2(uint8_t bits) { return kF8E5M2.toFloat(bits); }

}  // namespace heddle
