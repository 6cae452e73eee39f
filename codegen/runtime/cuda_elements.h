// Loads and stores elements of any dtype, for the CUDA kernels that heddle does not generate
// (cuda_library.h and cuda_product.h). In a kernel source, this text precedes the text of
// cuda_lines.h or cuda_product.h (codegen/runtime).

namespace hdl {

typedef long long I64;
typedef unsigned long long U64;
typedef unsigned U32;

// The values of DType (ir/base/dtype.h), in the same order.
enum Type { kBool, kU8, kI8, kI32, kI64, kF8E4M3, kF8E5M2, kF16, kBF16, kF32, kF64 };

__device__ inline float fromHalf(U32 bits) {
  U32 sign = (bits & 0x8000u) << 16;
  U32 exponent = (bits >> 10) & 31u;
  U32 mantissa = bits & 0x3ffu;
  if (exponent == 31u) return __uint_as_float(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0u) return __uint_as_float(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  float value = (float)mantissa * 5.9604644775390625e-8f;  // 2^-24
  return sign != 0u ? -value : value;
}

__device__ inline unsigned short toHalf(float x) {
  U32 bits = __float_as_uint(x);
  U32 sign = (bits >> 16) & 0x8000u;
  U32 size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return (unsigned short)(sign | 0x7e00u);
  if (size >= 0x47800000u) return (unsigned short)(sign | 0x7c00u);
  if (size >= 0x38800000u) {
    U32 rounded = size + 0xfffu + ((size >> 13) & 1u);
    return (unsigned short)(sign | ((rounded - 0x38000000u) >> 13));
  }
  // The result is a subnormal f16, which is a multiple of 2^-24. `scaled` is |x| * 2^24 + 2^23. The
  // addition of 2^23 rounds |x| * 2^24 to an integer. The low bits of the sum are this integer, and
  // they are also the bits of the f16.
  float scaled = __uint_as_float(size) * 16777216.0f + 8388608.0f;
  return (unsigned short)(sign | (__float_as_uint(scaled) & 0x7fffffu));
}

__device__ inline unsigned short toBf16(float x) {
  U32 bits = __float_as_uint(x);
  if (x != x) return (unsigned short)((bits >> 16) | 0x40u);
  return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// Returns the value of an f8e4m3 byte. Shifts the bits to their positions in an f16, whose value is
// then 2^-8 times the value of the byte. NaN is a special case, because the shifted bits of a NaN
// are a number in f16.
__device__ inline float fromE4M3(U32 bits) {
  if ((bits & 0x7fu) == 0x7fu) return __uint_as_float(0x7fc00000u);
  return fromHalf((bits & 0x80u) << 8 | (bits & 0x7fu) << 7) * 256.0f;
}
__device__ inline float fromE5M2(U32 bits) { return fromHalf(bits << 8); }

// Converts `x` to a float of 8 bits: a sign, an exponent with the bias `bias`, and a mantissa of
// `mantissa` bits. `overflow` are the bits that replace values that are too large.
__device__ inline unsigned char toByte(float x, U32 mantissa, U32 bias, U32 overflow) {
  U32 bits = __float_as_uint(x);
  U32 sign = (bits >> 24) & 0x80u;
  U32 size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return (unsigned char)(sign | 0x7fu);
  const U32 rebias = (127u - bias) << 23;
  const U32 dropped = 23u - mantissa;
  U32 rounded;
  if (size < rebias + (1u << 23)) {
    // `big` has the bits of a float whose unit in the last place is the smallest positive value of
    // the format. The addition of this float rounds the sum to a multiple of that value.
    const U32 big = (127u + 24u - bias - mantissa) << 23;
    rounded = __float_as_uint(__uint_as_float(size) + __uint_as_float(big)) - big;
  } else {
    rounded = (size - rebias + (1u << (dropped - 1)) - 1u + ((size >> dropped) & 1u)) >> dropped;
  }
  return (unsigned char)(sign | (rounded > overflow ? overflow : rounded));
}

__device__ inline bool isFloatType(I64 type) { return type >= kF8E4M3; }

// loadAs() converts element i of `from` to the type of its first argument. storeAs() converts
// `value` to `type` and stores it as element i of `to`. Kernels compute floats in double or float,
// and storeAs() rounds the result. Kernels compute integers and bools in U64. storeAs() wraps the
// result; a bool becomes 1 if the result is not 0.
__device__ inline double loadAs(double, I64 type, const void* from, I64 i) {
  switch (type) {
    case kF64:
      return ((const double*)from)[i];
    case kF32:
      return ((const float*)from)[i];
    case kBF16:
      return __uint_as_float((U32)((const unsigned short*)from)[i] << 16);
    case kF8E4M3:
      return fromE4M3(((const unsigned char*)from)[i]);
    case kF8E5M2:
      return fromE5M2(((const unsigned char*)from)[i]);
    default:
      return fromHalf(((const unsigned short*)from)[i]);
  }
}
__device__ inline float loadAs(float, I64 type, const void* from, I64 i) {
  return (float)loadAs(double(), type, from, i);
}
__device__ inline U64 loadAs(U64, I64 type, const void* from, I64 i) {
  switch (type) {
    case kI64:
      return (U64)((const I64*)from)[i];
    case kI32:
      return (U64)(I64)((const int*)from)[i];
    case kI8:
      return (U64)(I64)((const signed char*)from)[i];
    case kU8:
      return ((const unsigned char*)from)[i];
    default:
      return ((const unsigned char*)from)[i] != 0 ? 1u : 0u;
  }
}

__device__ inline void storeAs(I64 type, void* to, I64 i, double value) {
  switch (type) {
    case kF64:
      ((double*)to)[i] = value;
      break;
    case kF32:
      ((float*)to)[i] = (float)value;
      break;
    case kBF16:
      ((unsigned short*)to)[i] = toBf16((float)value);
      break;
    case kF16:
      ((unsigned short*)to)[i] = toHalf((float)value);
      break;
    case kF8E4M3:
      ((unsigned char*)to)[i] = toByte((float)value, 3, 7, 0x7e);
      break;
    case kF8E5M2:
      ((unsigned char*)to)[i] = toByte((float)value, 2, 15, 0x7c);
      break;
  }
}
__device__ inline void storeAs(I64 type, void* to, I64 i, float value) {
  storeAs(type, to, i, (double)value);
}
__device__ inline void storeAs(I64 type, void* to, I64 i, U64 value) {
  switch (type) {
    case kI64:
      ((U64*)to)[i] = value;
      break;
    case kI32:
      ((U32*)to)[i] = (U32)value;
      break;
    case kI8:
    case kU8:
      ((unsigned char*)to)[i] = (unsigned char)value;
      break;
    default:
      ((unsigned char*)to)[i] = value != 0 ? 1 : 0;
      break;
  }
}

__device__ inline void copyElement(I64 type, void* to, I64 i, const void* from, I64 k) {
  switch (type) {
    case kI64:
    case kF64:
      ((U64*)to)[i] = ((const U64*)from)[k];
      break;
    case kI32:
    case kF32:
      ((U32*)to)[i] = ((const U32*)from)[k];
      break;
    case kBF16:
    case kF16:
      ((unsigned short*)to)[i] = ((const unsigned short*)from)[k];
      break;
    default:
      ((unsigned char*)to)[i] = ((const unsigned char*)from)[k];
      break;
  }
}

}  // namespace hdl
