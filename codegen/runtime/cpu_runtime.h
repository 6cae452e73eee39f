// The runtime of generated C++ kernels: types, conversions, memory accesses. This text precedes the
// text of every kernel. It includes no header, so that kernels compile fast.

// Marks functions that the compiler must inline into loops. The compiler cannot vectorize a loop
// with a call. In a large text, the compiler may decide not to inline a function that is only
// marked `inline`.
#define HD_INLINE __attribute__((always_inline)) inline

namespace hd {

typedef unsigned char Bool;
typedef signed char Int8;
typedef int Int32;
struct UInt8 {
  unsigned char value;
};
struct BFloat16 {
  unsigned short bits;
};
struct Half {
  unsigned short bits;
};
struct Float8E4M3 {
  unsigned char bits;
};
struct Float8E5M2 {
  unsigned char bits;
};

inline long long smaller(long long a, long long b) { return a < b ? a : b; }

// Returns the part to which a block (on a CPU: a tile) of a shared launch belongs. A shared launch
// computes several independent parts of a segment. first[i] is the first block of part i, in
// ascending order. `parts` is not 0.
inline int partOf(const int* first, int parts, long long block) {
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

inline float infF32() { return __builtin_inff(); }
inline double infF64() { return __builtin_inf(); }
inline float nanF32() { return __builtin_nanf(""); }
inline double nanF64() { return __builtin_nan(""); }

inline unsigned bitsOf(float x) {
  unsigned bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  return bits;
}
inline float floatOf(unsigned bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof(x));
  return x;
}

// Returns the bits of `x` as a bf16, rounded to nearest even. A NaN becomes a quiet NaN.
inline unsigned bf16Bits(float x) {
  const unsigned bits = bitsOf(x);
  const unsigned rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const unsigned quiet = (bits >> 16) | 0x40u;
  return x != x ? quiet : rounded;
}
inline float roundBf16(float x) { return floatOf(bf16Bits(x) << 16); }

// A float format of `width` bits: a sign, an exponent with the bias `bias`, and a mantissa of
// `mantissa` bits. `overflow` are the bits that replace values that are too large: infinity, or the
// largest value if the format has no infinity (`infinite` is false). The functions have no
// branches, so the compiler can vectorize loops over them.
template <int width, int mantissa, int bias, unsigned overflow, unsigned nan, bool infinite = true>
struct SmallFloat {
  static constexpr unsigned rebias = (127u - bias) << 23;
  static constexpr unsigned sign = 1u << (width - 1);

  static HD_INLINE unsigned bits(float x) {
    constexpr int dropped = 23 - mantissa;
    // The bits of a float whose unit in the last place is the smallest positive value of the
    // format. The addition of this float rounds the sum to a multiple of that value.
    constexpr unsigned big = (unsigned)(127 + 24 - bias - mantissa) << 23;
    const unsigned magnitude = bitsOf(x) & 0x7fffffffu;
    const unsigned half = (1u << (dropped - 1)) - 1u + ((magnitude >> dropped) & 1u);
    const unsigned normal = (magnitude - rebias + half) >> dropped;
    const unsigned subnormal = bitsOf(floatOf(magnitude) + floatOf(big)) - big;
    const unsigned finite = magnitude < rebias + (1u << 23) ? subnormal : normal;
    const unsigned limited = finite < overflow ? finite : overflow;
    return (magnitude > 0x7f800000u ? nan : limited) | (bitsOf(x) >> 31 << (width - 1));
  }

  static HD_INLINE float value(unsigned x) {
    constexpr unsigned smallest = (unsigned)(127 + 1 - bias - mantissa) << 23;
    const unsigned magnitude = x & (sign - 1u);
    const unsigned normal = (magnitude << (23 - mantissa)) + rebias;
    const unsigned subnormal = bitsOf((float)(int)magnitude * floatOf(smallest));
    const unsigned finite = magnitude < (1u << mantissa) ? subnormal : normal;
    const unsigned other = magnitude > overflow ? 0x7fc00000u : 0x7f800000u;
    const bool number = infinite ? magnitude < overflow : magnitude <= overflow;
    return floatOf((number ? finite : other) | (x & sign) << (32 - width));
  }
};
typedef SmallFloat<16, 10, 15, 0x7c00u, 0x7e00u> F16Format;
typedef SmallFloat<8, 3, 7, 0x7eu, 0x7fu, false> F8E4M3Format;
typedef SmallFloat<8, 2, 15, 0x7cu, 0x7fu> F8E5M2Format;

inline unsigned f16Bits(float x) { return F16Format::bits(x); }
inline unsigned f8e4m3Bits(float x) { return F8E4M3Format::bits(x); }
inline unsigned f8e5m2Bits(float x) { return F8E5M2Format::bits(x); }
inline float f16Value(unsigned x) { return F16Format::value(x); }
inline float f8e4m3Value(unsigned x) { return F8E4M3Format::value(x); }
inline float f8e5m2Value(unsigned x) { return F8E5M2Format::value(x); }
inline float roundF16(float x) { return f16Value(f16Bits(x)); }
inline float roundF8E4M3(float x) { return f8e4m3Value(f8e4m3Bits(x)); }
inline float roundF8E5M2(float x) { return f8e5m2Value(f8e5m2Bits(x)); }

// Integers are computed in i64 and then wrapped to their type. The conversion of a float to an
// integer saturates, and NaN becomes 0.
inline long long wrapU8(long long x) { return (unsigned char)x; }
inline long long wrapI8(long long x) { return (signed char)x; }
inline long long wrapI32(long long x) { return (int)x; }
// Returns 0 if `x` is NaN or truncates to 0, else `limited`. The caller converts the result to an
// integer. Without this function, a float that a kernel converts to an integer and back could
// become -0: some compilers replace the two conversions by trunc(), which keeps the sign.
template <class F>
inline F kept(F x, F limited) {
  return (x >= 1) | (x <= -1) ? limited : 0;
}
template <class F>
inline long long saturate(F x, F lowest, F highest) {
  const F at_least = x > lowest ? x : lowest;
  const F limited = at_least < highest ? at_least : highest;
  return (int)kept(x, limited);
}
inline long long saturateU8(float x) { return saturate(x, 0.0f, 255.0f); }
inline long long saturateU8(double x) { return saturate(x, 0.0, 255.0); }
inline long long saturateI8(float x) { return saturate(x, -128.0f, 127.0f); }
inline long long saturateI8(double x) { return saturate(x, -128.0, 127.0); }
inline long long saturateI32(double x) { return saturate(x, -2147483648.0, 2147483647.0); }
inline long long saturateI64(double x) {
  const bool high = x >= 0x1p63;
  const bool low = x < -0x1p63;
  const long long inside = (long long)kept(high | low ? 0.0 : x, x);
  return high ? 0x7fffffffffffffffLL : low ? -0x7fffffffffffffffLL - 1 : inside;
}

inline bool get(Bool x) { return x != 0; }
inline long long get(UInt8 x) { return x.value; }
inline long long get(Int8 x) { return x; }
inline long long get(Int32 x) { return x; }
inline long long get(long long x) { return x; }
inline float get(Float8E4M3 x) { return f8e4m3Value(x.bits); }
inline float get(Float8E5M2 x) { return f8e5m2Value(x.bits); }
inline float get(Half x) { return f16Value(x.bits); }
inline float get(BFloat16 x) { return floatOf((unsigned)x.bits << 16); }
inline float get(float x) { return x; }
inline double get(double x) { return x; }

// Returns whether 0 <= index < extent. One unsigned comparison checks both ends.
inline bool inside(long long index, long long extent) {
  return (unsigned long long)index < (unsigned long long)extent;
}
template <class T>
inline T fetch(const T* from) {
  return *from;
}

// Starts to read `count` elements into the cache. `write` is 1 if the caller will write them. The
// address may be invalid.
template <int count, int write = 0, class T>
inline void prefetch(const T* from) {
  for (int i = 0; i < count; i += 64 / (int)sizeof(T)) __builtin_prefetch(from + i, write);
}

// Stores `count` elements. `from` must be aligned to a cache line. If `to` is aligned too, full
// lines bypass the caches: they are written without being read first. On CPUs without SSE, no line
// bypasses the caches.
template <class T>
inline void stream(T* to, const T* from, long long count) {
  constexpr long long line = 64 / (long long)sizeof(T);
  long long i = 0;
#if defined(__SSE__)
  const long long misplaced = (long long)((unsigned long long)to % 64);
  if (misplaced == 0) {
#if defined(__AVX512F__)
    typedef float Vector __attribute__((vector_size(64), may_alias));
#elif defined(__AVX__)
    typedef float Vector __attribute__((vector_size(32), may_alias));
#else
    typedef float Vector __attribute__((vector_size(16), may_alias));
#endif
    for (; i + line <= count; i += line) {
      for (int part = 0; part < 64 / (int)sizeof(Vector); ++part) {
        const Vector v = ((const Vector*)(from + i))[part];
        Vector* const at = (Vector*)(to + i) + part;
#if defined(__clang__)
        __builtin_nontemporal_store(v, at);
#elif defined(__AVX512F__)
        __builtin_ia32_movntps512((float*)at, v);
#elif defined(__AVX__)
        __builtin_ia32_movntps256((float*)at, v);
#else
        __builtin_ia32_movntps((float*)at, v);
#endif
      }
    }
  }
#endif
  for (; i < count; ++i) to[i] = from[i];
}
// Makes the lines that stream() has written visible to other threads before any later store of this
// thread.
inline void finishStreams() {
#if defined(__SSE__)
  __builtin_ia32_sfence();
#endif
}

template <class T, class V>
inline T put(V x) {
  return (T)x;
}
template <>
inline BFloat16 put<BFloat16, float>(float x) {
  // x is already rounded to bf16.
  return {(unsigned short)(bitsOf(x) >> 16)};
}
template <>
inline Half put<Half, float>(float x) {
  return {(unsigned short)f16Bits(x)};
}
template <>
inline Float8E4M3 put<Float8E4M3, float>(float x) {
  return {(unsigned char)f8e4m3Bits(x)};
}
template <>
inline Float8E5M2 put<Float8E5M2, float>(float x) {
  return {(unsigned char)f8e5m2Bits(x)};
}
template <>
inline UInt8 put<UInt8, long long>(long long x) {
  return {(unsigned char)x};
}

}  // namespace hd
