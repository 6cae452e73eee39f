// The runtime of generated CUDA kernels: the types of elements, and conversions. This text precedes
// the text of every kernel, after cuda_device.h. It includes no header, so that NVRTC has little to
// read. The runtime headers contain the intrinsics; the text of a kernel contains none.

namespace hd {

typedef unsigned char Bool;
typedef signed char Int8;
typedef int Int32;
struct UInt8 {
  unsigned char value;
};
struct alignas(2) BFloat16 {
  unsigned short bits;
};
struct alignas(2) Half {
  unsigned short bits;
};
struct Float8E4M3 {
  unsigned char bits;
};
struct Float8E5M2 {
  unsigned char bits;
};

template <class T>
__device__ inline T smaller(T a, T b) {
  return a < b ? a : b;
}

// A number by which a kernel divides indices. The division n / d takes three instructions. It
// requires that `n` is not negative. `inverse` comes from ArgumentLayout::addDivisor()
// (codegen/frame/kernel_frame.h).
struct Divisor {
  int value;
  unsigned factor, shift;
  __device__ Divisor(int divisor, long long inverse)
      : value(divisor), factor((unsigned)inverse), shift((unsigned)(inverse >> 32)) {}
};
__device__ inline int operator/(int n, Divisor d) {
  const unsigned long long product = (unsigned long long)(2u * (unsigned)n) * d.factor;
  return (int)((unsigned)(product >> 32) >> d.shift);
}
__device__ inline int operator%(int n, Divisor d) { return n - n / d * d.value; }

// Returns the part to which a block (on a CPU: a tile) of a shared launch belongs. A shared launch
// computes several independent parts of a segment. first[i] is the first block of part i, in
// ascending order. `parts` is not 0.
__device__ inline int partOf(const int* first, int parts, long long block) {
  int begin = 0;
  for (int end = parts; end - begin > 1;) {
    const int middle = (begin + end) / 2;
    if (block < first[middle]) {
      end = middle;
    } else {
      begin = middle;
    }
  }
  return begin;
}

__device__ inline float infF32() { return __int_as_float(0x7f800000); }
__device__ inline double infF64() { return __longlong_as_double(0x7ff0000000000000ll); }
__device__ inline float nanF32() { return __int_as_float(0x7fc00000); }
__device__ inline double nanF64() { return __longlong_as_double(0x7ff8000000000000ll); }

// --- smaller floats: round to nearest even; overflow gives inf (f8e4m3: 448) ---------------------

// Converts `x` to a float of 8 bits: a sign, an exponent with the bias `bias`, and a mantissa of
// `mantissa` bits. `overflow` are the bits that replace values that are too large: infinity, or the
// largest value if the format has no infinity.
template <int mantissa, int bias, unsigned overflow>
__device__ inline unsigned char f8Bits(float x) {
  constexpr int dropped = 23 - mantissa;
  constexpr unsigned rebias = (127u - bias) << 23;
  // The bits of a float whose unit in the last place is the smallest positive value of the format.
  // The addition of this float rounds the sum to a multiple of that value.
  constexpr unsigned big = (unsigned)(127 + 24 - bias - mantissa) << 23;
  const unsigned bits = __float_as_uint(x);
  const unsigned magnitude = bits & 0x7fffffffu;
  const unsigned half = (1u << (dropped - 1)) - 1u + ((magnitude >> dropped) & 1u);
  const unsigned normal = (magnitude - rebias + half) >> dropped;
  const unsigned subnormal =
      __float_as_uint(__uint_as_float(magnitude) + __uint_as_float(big)) - big;
  const unsigned finite = magnitude < rebias + (1u << 23) ? subnormal : normal;
  const unsigned limited = finite < overflow ? finite : overflow;
  return (unsigned char)((magnitude > 0x7f800000u ? 0x7fu : limited) | (bits >> 31 << 7));
}
__device__ inline unsigned char f8e4m3Bits(float x) { return f8Bits<3, 7, 0x7eu>(x); }
__device__ inline unsigned char f8e5m2Bits(float x) { return f8Bits<2, 15, 0x7cu>(x); }
// Returns the value of an f8e4m3 byte. Shifts the bits to their positions in an f16, whose value is
// then 2^-8 times the value of the byte. NaN is a special case, because the shifted bits of a NaN
// are a number in f16.
__device__ inline float f8e4m3Value(unsigned char x) {
  const unsigned magnitude = x & 0x7fu;
  const float value = f16Value((unsigned short)((x & 0x80u) << 8 | magnitude << 7)) * 256.0f;
  return magnitude == 0x7fu ? nanF32() : value;
}
__device__ inline float f8e5m2Value(unsigned char x) { return f16Value((unsigned short)(x << 8)); }

__device__ inline float roundF16(float x) { return f16Value(f16Bits(x)); }
__device__ inline float roundF8E4M3(float x) { return f8e4m3Value(f8e4m3Bits(x)); }
__device__ inline float roundF8E5M2(float x) { return f8e5m2Value(f8e5m2Bits(x)); }

// --- integers: computed in i64, then wrapped; from floats: saturated, NaN becomes 0 --------------

__device__ inline long long wrapU8(long long x) { return (unsigned char)x; }
__device__ inline long long wrapI8(long long x) { return (signed char)x; }
__device__ inline long long wrapI32(long long x) { return (int)x; }
// NaN is a special case, because fminf and fmaxf would convert NaN to `lowest` or `highest`.
__device__ inline long long saturate(float x, float lowest, float highest) {
  return x != x ? 0 : (int)::fminf(::fmaxf(x, lowest), highest);
}
__device__ inline long long saturate(double x, double lowest, double highest) {
  return x != x ? 0 : (int)::fmin(::fmax(x, lowest), highest);
}
__device__ inline long long saturateU8(float x) { return saturate(x, 0.0f, 255.0f); }
__device__ inline long long saturateU8(double x) { return saturate(x, 0.0, 255.0); }
__device__ inline long long saturateI8(float x) { return saturate(x, -128.0f, 127.0f); }
__device__ inline long long saturateI8(double x) { return saturate(x, -128.0, 127.0); }
// The conversions of the hardware saturate. NaN is a special case, because the hardware's result
// for NaN depends on the width of the integer.
__device__ inline long long saturateI32(float x) { return x != x ? 0 : __float2int_rz(x); }
__device__ inline long long saturateI32(double x) { return x != x ? 0 : __double2int_rz(x); }
__device__ inline long long saturateI64(float x) { return x != x ? 0 : __float2ll_rz(x); }
__device__ inline long long saturateI64(double x) { return x != x ? 0 : __double2ll_rz(x); }

__device__ inline bool get(Bool x) { return x != 0; }
__device__ inline long long get(UInt8 x) { return x.value; }
__device__ inline long long get(Int8 x) { return x; }
__device__ inline long long get(Int32 x) { return x; }
__device__ inline long long get(long long x) { return x; }
__device__ inline float get(Float8E4M3 x) { return f8e4m3Value(x.bits); }
__device__ inline float get(Float8E5M2 x) { return f8e5m2Value(x.bits); }
__device__ inline float get(Half x) { return f16Value(x.bits); }
__device__ inline float get(BFloat16 x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ inline float get(float x) { return x; }
__device__ inline double get(double x) { return x; }

template <class T, class V>
struct Put {
  __device__ static T from(V x) { return (T)x; }
};
template <>
struct Put<BFloat16, float> {
  // x is already rounded to bf16.
  __device__ static BFloat16 from(float x) { return {(unsigned short)(__float_as_uint(x) >> 16)}; }
};
template <>
struct Put<Half, float> {
  __device__ static Half from(float x) { return {f16Bits(x)}; }
};
template <>
struct Put<Float8E4M3, float> {
  __device__ static Float8E4M3 from(float x) { return {f8e4m3Bits(x)}; }
};
template <>
struct Put<Float8E5M2, float> {
  __device__ static Float8E5M2 from(float x) { return {f8e5m2Bits(x)}; }
};
template <>
struct Put<UInt8, long long> {
  __device__ static UInt8 from(long long x) { return {(unsigned char)x}; }
};
template <class T, class V>
__device__ inline T put(V x) {
  return Put<T, V>::from(x);
}

// Rounds one float to T, or rounds two floats and returns the bits of both as one word. In memory,
// this word is two neighbouring elements.
template <class T>
struct Round;
template <>
struct Round<BFloat16> {
  __device__ static BFloat16 one(float x) { return put<BFloat16>(roundBf16(x)); }
  __device__ static unsigned pair(float low, float high) { return bf16Pair(low, high); }
};
template <>
struct Round<Half> {
  __device__ static Half one(float x) { return {f16Bits(x)}; }
  __device__ static unsigned pair(float low, float high) { return f16Pair(low, high); }
};

// The workspace of a launch whose blocks share rows (codegen/tile/divided_rows.h): the next ticket,
// a counter for each row, and a slot for the state of each accumulator in each part of each row.
struct Board {
  static constexpr int kFirstArrival = 32;
  static constexpr int kSlotBytes = 32;
  unsigned* tickets;
  long long rows, parts;
  __device__ unsigned* arrivals(long long row) const { return tickets + kFirstArrival + row; }
  __device__ unsigned long long* slot(int accumulator, long long row, long long part) const {
    const long long first = (4 * (kFirstArrival + rows) + kSlotBytes - 1) / kSlotBytes;
    const long long number = (accumulator * rows + row) * parts + part;
    return (unsigned long long*)tickets + (first + number) * (kSlotBytes / 8);
  }
};

// Returns whether 0 <= index < extent. One unsigned comparison checks both ends.
__device__ inline bool inside(long long index, long long extent) {
  return (unsigned long long)index < (unsigned long long)extent;
}
__device__ inline bool inside(long long index, int extent) {
  return (unsigned long long)index < (unsigned)extent;
}
__device__ inline bool inside(int index, int extent) { return (unsigned)index < (unsigned)extent; }

}  // namespace hd
