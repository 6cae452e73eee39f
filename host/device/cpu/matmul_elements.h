#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "host/device/device.h"
#include "ir/base/small_floats.h"

namespace heddle::host::matmul {

// The elements of bool, and of the dtypes that C++ does not have, as they are stored in memory.
struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};
struct F8e4m3 {
  uint8_t bits;
};
struct F8e5m2 {
  uint8_t bits;
};
// An element of a or b of either f8 type. float8Table() (matmul_operand.h) maps its bits to a
// number.
struct F8 {
  uint8_t bits;
};
struct Byte {  // a bool
  uint8_t value;
};

// The conversions are inline and have no branches, so that the compiler can vectorize loops that
// call them.
inline float load(Bf16 x) { return kBf16.toFloat(x.bits); }
inline float load(float x) { return x; }
inline double load(double x) { return x; }
inline float load(F16 x) { return kF16.toFloat(x.bits); }
inline float load(F8e4m3 x) { return kF8E4M3.toFloat(x.bits); }
inline float load(F8e5m2 x) { return kF8E5M2.toFloat(x.bits); }
// Integers are computed modulo 2^64. Narrow integers wrap when they are stored.
template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
uint64_t load(T x) {
  return static_cast<uint64_t>(x);
}
inline uint8_t load(Byte x) { return x.value != 0 ? 1 : 0; }

inline void store(Bf16& to, float x) { to.bits = kBf16.from(x); }
inline void store(float& to, float x) { to = x; }
inline void store(double& to, double x) { to = x; }
inline void store(F16& to, float x) { to.bits = static_cast<uint16_t>(kF16.from(x)); }
inline void store(F8e4m3& to, float x) { to.bits = static_cast<uint8_t>(kF8E4M3.from(x)); }
inline void store(F8e5m2& to, float x) { to.bits = static_cast<uint8_t>(kF8E5M2.from(x)); }
template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
void store(T& to, uint64_t x) {
  to = static_cast<T>(x);
}
inline void store(Byte& to, uint8_t x) { to.value = x; }

// Stores `count` values. `stride` is the distance between successive addresses, in elements.
template <class Stored, class T>
void storeRow(const T* values, int64_t count, Stored* to, int64_t stride) {
  if (stride == 1) {
    for (int64_t j = 0; j < count; ++j) store(to[j], values[j]);
    return;
  }
  for (int64_t j = 0; j < count; ++j) store(to[j * stride], values[j]);
}

template <class T>
T sumOf(T a, T b) {
  return a + b;
}
inline uint8_t sumOf(uint8_t a, uint8_t b) { return a | b; }

// Returns the value to which finishRow() applies the activation. If `Stored` is an integer type,
// this is the value that x has after it is stored as `Stored`, where it wraps. Otherwise it is x.
template <class Stored, class T>
T wrapped(T x) {
  if constexpr (std::is_integral_v<Stored>) {
    return static_cast<T>(static_cast<Stored>(x));
  } else {
    return x;
  }
}

template <class T>
T activated(T x, Activation activation) {
  if (activation == Activation::Relu) {
    if constexpr (std::is_unsigned_v<T>) {  // x has the bits of an int64, or is a bool
      return static_cast<std::make_signed_t<T>>(x) < 0 ? T{0} : x;
    } else {
      return x < 0 ? T{0} : x;  // NaN remains NaN
    }
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (activation == Activation::GeluTanh) {  // Hendrycks and Gimpel 2016
      const T inner =
          static_cast<T>(0.7978845608028654) * (x + static_cast<T>(0.044715) * x * x * x);
      return static_cast<T>(0.5) * x * (T{1} + std::tanh(inner));
    }
  }
  return x;
}

// Adds the bias to consecutive sums of a row, and applies the activation. `bias` may be nullptr.
// Integers wrap before the activation is applied.
template <class Stored, class T>
void finishRow(T* sums, int64_t count, const Stored* bias, int64_t bias_stride,
               Activation activation) {
  if (bias != nullptr) {
    for (int64_t j = 0; j < count; ++j) {
      const T added = load(bias[j * bias_stride]);
      sums[j] = sumOf(sums[j], added);
    }
  }
  if (activation == Activation::None) return;
  for (int64_t j = 0; j < count; ++j) sums[j] = activated(wrapped<Stored>(sums[j]), activation);
}

}  // namespace heddle::host::matmul
