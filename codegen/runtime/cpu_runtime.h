// Runtime of generated C++ kernels. It stands before every kernel text and includes no header, so
// that compiling a kernel costs little; the declarations of libm carry the simd attribute, so that
// vectorized loops call libmvec.

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define HD_SIMD __attribute__((simd("notinbranch")))
#else
#define HD_SIMD
#endif

extern "C" {
HD_SIMD float expf(float);
HD_SIMD double exp(double);
HD_SIMD float logf(float);
HD_SIMD double log(double);
HD_SIMD float tanhf(float);
HD_SIMD double tanh(double);
HD_SIMD float erff(float);
HD_SIMD double erf(double);
HD_SIMD float sinf(float);
HD_SIMD double sin(double);
HD_SIMD float cosf(float);
HD_SIMD double cos(double);
HD_SIMD float powf(float, float);
HD_SIMD double pow(double, double);
}

namespace hd {

typedef unsigned char Bool;
struct BFloat16 {
  unsigned short bits;
};

inline long long smaller(long long a, long long b) { return a < b ? a : b; }

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

// To nearest even; a NaN stays a quiet NaN.
inline unsigned bf16Bits(float x) {
  const unsigned bits = bitsOf(x);
  const unsigned rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const unsigned quiet = (bits >> 16) | 0x40u;
  return x != x ? quiet : rounded;
}
inline float roundBf16(float x) { return floatOf(bf16Bits(x) << 16); }

inline bool get(Bool x) { return x != 0; }
inline long long get(long long x) { return x; }
inline float get(BFloat16 x) { return floatOf((unsigned)x.bits << 16); }
inline float get(float x) { return x; }
inline double get(double x) { return x; }

template <class T, class V>
inline T put(V x) {
  return (T)x;
}
template <>
inline BFloat16 put<BFloat16, float>(float x) {
  // The value is rounded already.
  return {(unsigned short)(bitsOf(x) >> 16)};
}

inline float abs(float x) { return __builtin_fabsf(x); }
inline double abs(double x) { return __builtin_fabs(x); }
inline long long abs(long long x) { return x < 0 ? -x : x; }
inline bool abs(bool x) { return x; }
inline float exp(float x) { return ::expf(x); }
inline double exp(double x) { return ::exp(x); }
inline float log(float x) { return ::logf(x); }
inline double log(double x) { return ::log(x); }
inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline double sqrt(double x) { return __builtin_sqrt(x); }
inline float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
inline float tanh(float x) { return ::tanhf(x); }
inline double tanh(double x) { return ::tanh(x); }
inline float erf(float x) { return ::erff(x); }
inline double erf(double x) { return ::erf(x); }
inline float sin(float x) { return ::sinf(x); }
inline double sin(double x) { return ::sin(x); }
inline float cos(float x) { return ::cosf(x); }
inline double cos(double x) { return ::cos(x); }
inline float pow(float x, float y) { return ::powf(x, y); }
inline double pow(double x, double y) { return ::pow(x, y); }
inline long long pow(long long x, long long y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
  unsigned long long result = 1;
  unsigned long long base = (unsigned long long)x;
  for (; y > 0; y >>= 1, base *= base) {
    if (y & 1) result *= base;
  }
  return (long long)result;
}
inline bool pow(bool x, bool y) { return x | !y; }

// A NaN on either side wins; the forms without branches vectorize.
inline float maximum(float a, float b) { return (a > b) | (a != a) ? a : b; }
inline double maximum(double a, double b) { return (a > b) | (a != a) ? a : b; }
inline long long maximum(long long a, long long b) { return a > b ? a : b; }
inline bool maximum(bool a, bool b) { return a | b; }
inline float minimum(float a, float b) { return (a < b) | (a != a) ? a : b; }
inline double minimum(double a, double b) { return (a < b) | (a != a) ? a : b; }
inline long long minimum(long long a, long long b) { return a < b ? a : b; }
inline bool minimum(bool a, bool b) { return a & b; }
inline float relu(float x) { return x < 0 ? 0.0f : x; }
inline double relu(double x) { return x < 0 ? 0.0 : x; }
inline long long relu(long long x) { return x < 0 ? 0 : x; }
inline bool relu(bool x) { return x; }

}  // namespace hd
