// Functions of the op table (ir/ops) for generated C++ kernels. A kernel source contains this text
// after cpu_runtime.h and cpu_vector_math.h.
//
// If a loop calls a function of libm, such as sinf, GCC calls libmvec in the vector part of the
// loop, and libm for the remaining elements. The results of libm and libmvec differ in the last
// bits. Results of libmvec also differ between vector widths. Therefore loops call functions that
// kernels define themselves, such as hd_sinf. hd_sinf exists for one element and for every vector
// width. All of these versions call the same function of libmvec:
// - with AVX-512, usually the function for vectors of 64 bytes. A few, such as hd_erf, call the
//   function for 32 bytes, because two calls of it are faster than one call for 64 bytes
// - otherwise, the function for vectors of 32 bytes
//
// The result for an element therefore has the same bits at every position in a loop. The text of a
// kernel defines the functions that it needs (codegen/emit/libm_text.h). Loops call libm if there
// is no libmvec, and for fmod and lgamma, which libmvec lacks.

#if defined(__x86_64__) && defined(__AVX2__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(HD_NO_LIBMVEC)
#define HD_LIBMVEC
#define HD_SIMD __attribute__((simd("notinbranch"), const, nothrow))
#define HD_LIBM(name) hd_##name

namespace hd {

template <class T, int bytes>
struct VectorOf {
  typedef T Type __attribute__((vector_size(bytes)));
};
template <class T, int bytes>
using Vector = typename VectorOf<T, bytes>::Type;

// partOf() returns part `index` of a vector. joined() returns the vector that consists of two parts
// of equal size.
template <class Part, class Whole>
HD_INLINE Part partOf(const Whole& whole, int index) {
  Part part;
  __builtin_memcpy(&part, (const char*)&whole + index * sizeof(Part), sizeof(Part));
  return part;
}
template <class Whole, class Part>
HD_INLINE Whole joined(const Part& low, const Part& high) {
  Whole whole;
  __builtin_memcpy(&whole, &low, sizeof(Part));
  __builtin_memcpy((char*)&whole + sizeof(Part), &high, sizeof(Part));
  return whole;
}
#if __GNUC__ >= 12
// Joins in registers, because a load of 64 bytes right after two stores of 32 bytes is slow.
template <>
HD_INLINE Vector<float, 64> joined(const Vector<float, 32>& a, const Vector<float, 32>& b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
template <>
HD_INLINE Vector<double, 64> joined(const Vector<double, 32>& a, const Vector<double, 32>& b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
}
#endif
// Returns a vector that consists of copies of `x`, an element or a vector.
template <class Whole, class X>
HD_INLINE Whole repeated(const X& x) {
  if constexpr (sizeof(X) < 16) {
    Whole all;
    for (int i = 0; i < (int)(sizeof(Whole) / sizeof(X)); ++i) all[i] = x;
    return all;
  } else if constexpr (2 * sizeof(X) <= sizeof(Whole)) {
    return repeated<Whole>(joined<Vector<decltype(x[0] + x[0]), 2 * sizeof(X)>>(x, x));
  } else {
    return x;
  }
}
// Calls `form`, a function of libmvec. The operands `xs` may be shorter or longer than the vectors
// of `form`. Shorter operands are repeated until they fill a vector. Longer operands are processed
// in two parts.
template <class X, class Whole, class... Wholes, class... Xs>
HD_INLINE X byForm(Whole (*form)(Wholes...), const Xs&... xs) {
  if constexpr (sizeof(X) > sizeof(Whole)) {
    return joined<X>(form(partOf<Whole>(xs, 0)...), form(partOf<Whole>(xs, 1)...));
  } else {
    return partOf<X>(form(repeated<Whole>(xs)...), 0);
  }
}

}  // namespace hd
#define HD_V16(T) hd::Vector<T, 16>
#define HD_V32(T) hd::Vector<T, 32>
#define HD_V64(T) hd::Vector<T, 64>
// HD_FORM_v defines a function of one operand, and HD_FORM_vv a function of two operands. The new
// function calls `base`, a function of libmvec. `symbol` is the symbol of the new function, which
// vectorized loops call. `name` is its C++ name, and only the macro uses it.
#define HD_OPERANDS_v(type) type
#define HD_OPERANDS_vv(type) type, type
#define HD_FORM_v(type, name, symbol, base)                              \
  __attribute__((visibility("hidden"))) type name(type) __asm__(symbol); \
  type name(type x) { return hd::byForm<type>(base, x); }
#define HD_FORM_vv(type, name, symbol, base)                                   \
  __attribute__((visibility("hidden"))) type name(type, type) __asm__(symbol); \
  type name(type x, type y) { return hd::byForm<type>(base, x, y); }
#else
#define HD_SIMD
#define HD_LIBM(name) name
#endif

#define HD_DECLARE1(name)                \
  HD_SIMD float HD_LIBM(name##f)(float); \
  HD_SIMD double HD_LIBM(name)(double);
#define HD_DECLARE2(name)                       \
  HD_SIMD float HD_LIBM(name##f)(float, float); \
  HD_SIMD double HD_LIBM(name)(double, double);

extern "C" {
HD_SIMD double HD_LIBM(exp)(double);
HD_DECLARE1(exp2)
HD_SIMD double HD_LIBM(expm1)(double);
HD_SIMD double HD_LIBM(log)(double);
HD_DECLARE1(log2)
HD_DECLARE1(log10)
HD_SIMD double HD_LIBM(log1p)(double);
HD_DECLARE1(sin)
HD_DECLARE1(cos)
HD_DECLARE1(tan)
HD_DECLARE1(asin)
HD_DECLARE1(acos)
HD_DECLARE1(atan)
HD_DECLARE1(sinh)
HD_DECLARE1(cosh)
HD_SIMD double HD_LIBM(tanh)(double);
HD_DECLARE1(asinh)
HD_DECLARE1(acosh)
HD_DECLARE1(atanh)
HD_SIMD double HD_LIBM(erf)(double);
HD_DECLARE1(erfc)
HD_DECLARE2(pow)
HD_DECLARE2(atan2)
float fmodf(float, float);
double fmod(double, double);
float lgammaf_r(float, int*);
double lgamma_r(double, int*);
}

#define HD_UNARY(name)                                         \
  inline float name(float x) { return ::HD_LIBM(name##f)(x); } \
  inline double name(double x) { return ::HD_LIBM(name)(x); }
#define HD_BINARY(name)                                                    \
  inline float name(float x, float y) { return ::HD_LIBM(name##f)(x, y); } \
  inline double name(double x, double y) { return ::HD_LIBM(name)(x, y); }
#define HD_BUILTIN(name)                                        \
  inline float name(float x) { return __builtin_##name##f(x); } \
  inline double name(double x) { return __builtin_##name(x); }

namespace hd {

inline double exp(double x) { return ::HD_LIBM(exp)(x); }
HD_UNARY(exp2)
inline double expm1(double x) { return ::HD_LIBM(expm1)(x); }
inline double log(double x) { return ::HD_LIBM(log)(x); }
HD_UNARY(log2)
HD_UNARY(log10)
inline double log1p(double x) { return ::HD_LIBM(log1p)(x); }
HD_UNARY(sin)
HD_UNARY(cos)
HD_UNARY(tan)
HD_UNARY(asin)
HD_UNARY(acos)
HD_UNARY(atan)
HD_UNARY(sinh)
HD_UNARY(cosh)
inline double tanh(double x) { return ::HD_LIBM(tanh)(x); }
HD_UNARY(asinh)
HD_UNARY(acosh)
HD_UNARY(atanh)
inline double erf(double x) { return ::HD_LIBM(erf)(x); }
HD_UNARY(erfc)
HD_BINARY(pow)
HD_BINARY(atan2)
inline float fmod(float x, float y) { return ::fmodf(x, y); }
inline double fmod(double x, double y) { return ::fmod(x, y); }
inline float nearSin(float x) { return sin(x); }  // see nearExp() in cpu_vector_math.h
inline float nearCos(float x) { return cos(x); }
HD_BUILTIN(sqrt)
HD_BUILTIN(floor)
HD_BUILTIN(ceil)
HD_BUILTIN(trunc)
inline float round(float x) { return __builtin_rintf(x); }
inline double round(double x) { return __builtin_rint(x); }
inline float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
inline float fabs(float x) { return __builtin_fabsf(x); }
inline double fabs(double x) { return __builtin_fabs(x); }
inline float copysign(float x, float y) { return __builtin_copysignf(x, y); }
inline double copysign(double x, double y) { return __builtin_copysign(x, y); }
inline bool signbit(float x) { return bitsOf(x) >> 31; }
inline bool signbit(double x) { return __builtin_signbit(x); }
inline bool isinf(float x) { return __builtin_fabsf(x) == infF32(); }
inline bool isinf(double x) { return __builtin_fabs(x) == infF64(); }
inline bool isfinite(float x) { return __builtin_fabsf(x) < infF32(); }
inline bool isfinite(double x) { return __builtin_fabs(x) < infF64(); }
inline float lgamma(float x) {
  int sign;
  return ::lgammaf_r(x, &sign);
}
inline double lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

// Returns an approximation of erfinv(x), which is accurate to single precision for 1 - |x| >=
// 2^-24. Source: M. Giles, "Approximating the erfinv function" (2010).
inline double erfinvStart(double x) {
  const double w = -log((1 - x) * (1 + x));
  const double near = w - 2.5;
  const double far = sqrt(w) - 3;
  double p = (2.81022636e-08 * near + 3.43273939e-07) * near + -3.5233877e-06;
  p = ((p * near + -4.39150654e-06) * near + 0.00021858087) * near + -0.00125372503;
  p = ((p * near + -0.00417768164) * near + 0.246640727) * near + 1.50140941;
  double q = (-0.000200214257 * far + 0.000100950558) * far + 0.00134934322;
  q = ((q * far + -0.00367342844) * far + 0.00573950773) * far + -0.0076224613;
  q = ((q * far + 0.00943887047) * far + 1.00167406) * far + 2.83297682;
  return (w < 5 ? p : q) * x;
}
// Improves y, an approximation of erfinv(a), by one Halley step. For a >= 0.5 it computes erf(y) -
// a as (1 - a) - erfc(y), because 1 - a is exact for these a.
inline double erfinvStep(double a, double y) {
  const double low = erf(y) - a;
  const double high = (1 - a) - erfc(y);
  const double error = a < 0.5 ? low : high;
  const double step = error * 0.88622692545275801 * exp(y * y);
  return y - step / (1 + y * step);
}
// Returns erfinv(1 - c) with an error below 0.2 % for c <= 2^-20. The value follows from the first
// term of the asymptotic series erfc(y) = exp(-y^2) / (y sqrt(pi)) (...), with c = erfc(y).
inline double erfinvNearOne(double c) {
  const double w = -log(c);
  const double square = w - 0.5 * log(3.14159265358979324 * w);
  return sqrt(w - 0.5 * log(3.14159265358979324 * square));
}
inline double erfinv(double x) {
  const double a = fabs(x);
  const double near = erfinvNearOne(1 - a);
  const double start = 1 - a < 0x1p-20 ? near : erfinvStart(a);
  const double y = erfinvStep(a, erfinvStep(a, start));
  return a == 1 ? copysign(infF64(), x) : copysign(y, x);
}
inline float erfinv(float x) {
  const double a = fabs((double)x);
  return a == 1 ? copysign(infF32(), x) : (float)copysign(erfinvStep(a, erfinvStart(a)), (double)x);
}

inline long long abs(long long x) { return x < 0 ? -x : x; }
inline float abs(float x) { return fabs(x); }
inline double abs(double x) { return fabs(x); }
inline float sign(float x) { return (float)((x > 0) - (x < 0)); }
inline double sign(double x) { return (double)((x > 0) - (x < 0)); }
inline long long sign(long long x) { return (x > 0) - (x < 0); }
inline bool sign(bool x) { return x; }
inline float relu(float x) { return x < 0 ? 0.0f : x; }
inline double relu(double x) { return x < 0 ? 0.0 : x; }
inline long long relu(long long x) { return x < 0 ? 0 : x; }
inline long long floor(long long x) { return x; }
inline long long ceil(long long x) { return x; }
inline long long round(long long x) { return x; }
inline long long trunc(long long x) { return x; }
inline bool signbit(long long x) { return x < 0; }
inline bool signbit(bool) { return false; }
inline bool isinf(long long) { return false; }
inline bool isinf(bool) { return false; }
inline bool isfinite(long long) { return true; }
inline bool isfinite(bool) { return true; }
inline long long bitwise_not(long long x) { return ~x; }
inline bool bitwise_not(bool x) { return !x; }

// maximum() and minimum(): if an operand is NaN, the result is NaN. These expressions have no
// branches, so the compiler can vectorize loops over them.
inline float maximum(float a, float b) { return (a > b) | (a != a) ? a : b; }
inline double maximum(double a, double b) { return (a > b) | (a != a) ? a : b; }
inline long long maximum(long long a, long long b) { return a > b ? a : b; }
inline bool maximum(bool a, bool b) { return a | b; }
inline float minimum(float a, float b) { return (a < b) | (a != a) ? a : b; }
inline double minimum(double a, double b) { return (a < b) | (a != a) ? a : b; }
inline long long minimum(long long a, long long b) { return a < b ? a : b; }
inline bool minimum(bool a, bool b) { return a & b; }
// fmax() and fmin(): the result is NaN only if both operands are NaN.
inline float fmax(float a, float b) { return (a >= b) | (b != b) ? a : b; }
inline double fmax(double a, double b) { return (a >= b) | (b != b) ? a : b; }
inline long long fmax(long long a, long long b) { return a > b ? a : b; }
inline bool fmax(bool a, bool b) { return a | b; }
inline float fmin(float a, float b) { return (a <= b) | (b != b) ? a : b; }
inline double fmin(double a, double b) { return (a <= b) | (b != b) ? a : b; }
inline long long fmin(long long a, long long b) { return a < b ? a : b; }
inline bool fmin(bool a, bool b) { return a & b; }

// Integer division by 0 gives the quotient 0 and the remainder 0. Division by -1 is a special case,
// because the lowest integer divided by -1 would overflow.
inline long long div_trunc(long long a, long long b) {
  return b == 0 ? 0 : b == -1 ? (long long)(0ull - (unsigned long long)a) : a / b;
}
inline long long fmod(long long a, long long b) { return b == 0 || b == -1 ? 0 : a % b; }
inline long long div_floor(long long a, long long b) {
  return div_trunc(a, b) - (fmod(a, b) != 0 && (a < 0) != (b < 0));
}
inline float div_trunc(float a, float b) { return trunc(a / b); }
inline double div_trunc(double a, double b) { return trunc(a / b); }
template <class T>
inline T divFloorReal(T a, T b) {
  const T mod = fmod(a, b);
  T quotient = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) quotient -= 1;
  const T low = floor(quotient);
  const T nearest = quotient - low > T(0.5) ? low + 1 : low;
  return b == 0 ? a / b : quotient == 0 ? copysign(T(0), a / b) : nearest;
}
inline float div_floor(float a, float b) { return divFloorReal(a, b); }
inline double div_floor(double a, double b) { return divFloorReal(a, b); }
template <class T>
inline T remainderOf(T a, T b) {
  const T mod = fmod(a, b);
  return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod;
}
inline float remainder(float a, float b) { return remainderOf(a, b); }
inline double remainder(double a, double b) { return remainderOf(a, b); }
inline long long remainder(long long a, long long b) { return remainderOf(a, b); }

// Computes a power whose exponent y is a number, not a tensor. For the exponents 0.5 and -0.5, it
// computes roots, as PyTorch does. Apart from rounding, the roots differ from the results of pow()
// only at -0.0 and -inf.
template <class T>
inline T powByNumber(T x, T y) {
  return y == T(0.5) ? sqrt(x) : y == T(-0.5) ? rsqrt(x) : pow(x, y);
}
inline long long pow(long long x, long long y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
  unsigned long long result = 1;
  unsigned long long base = (unsigned long long)x;
  for (; y > 0; y >>= 1, base *= base) {
    if (y & 1) result *= base;
  }
  return (long long)result;
}
inline long long shift_left(long long a, long long by) {
  return by < 0 || by > 63 ? 0 : (long long)((unsigned long long)a << by);
}
inline long long shift_right(long long a, long long by) {
  return a >> (by < 0 || by > 63 ? 63 : by);
}

template <class T>
inline T softplusOf(T x, T beta, T threshold) {
  const T soft = log1p(exp(x * beta)) / beta;
  return x * beta > threshold ? x : soft;
}
inline float softplus(float x, float beta, float threshold) {
  return softplusOf(x, beta, threshold);
}
inline double softplus(double x, double beta, double threshold) {
  return softplusOf(x, beta, threshold);
}
// Interpolates. For the weights 0 and 1, the result is exactly a or b if b - a does not overflow.
template <class T>
inline T lerpOf(T a, T b, T weight) {
  return fabs(weight) < T(0.5) ? a + weight * (b - a) : b - (b - a) * (1 - weight);
}
inline float lerp(float a, float b, float weight) { return lerpOf(a, b, weight); }
inline double lerp(double a, double b, double weight) { return lerpOf(a, b, weight); }

// A block of Philox4x32-10 with key `seed` and counter (`counter`, `offset`). Source: J. Salmon et
// al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. Each element computes its own block,
// so that the lanes of a vector are independent.
struct PhiloxBlock {
  unsigned word0, word1, word2, word3;
  inline void fill(long long seed, long long offset, unsigned long long counter) {
    unsigned key0 = (unsigned)seed, key1 = (unsigned)((unsigned long long)seed >> 32);
    word0 = (unsigned)counter, word1 = (unsigned)(counter >> 32);
    word2 = (unsigned)offset, word3 = (unsigned)((unsigned long long)offset >> 32);
    for (int round = 0; round < 10; ++round) {
      const unsigned long long even = 0xD2511F53ull * word0;
      const unsigned long long odd = 0xCD9E8D57ull * word2;
      word0 = (unsigned)(odd >> 32) ^ word1 ^ key0;
      word1 = (unsigned)odd;
      word2 = (unsigned)(even >> 32) ^ word3 ^ key1;
      word3 = (unsigned)even;
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
  }
};
// philox32() returns the one word of a block that belongs to an index, and philox64() the two
// words.
inline long long philox32(PhiloxBlock& block, long long seed, long long offset, long long index) {
  block.fill(seed, offset, (unsigned long long)index >> 2);
  const unsigned even = index & 2 ? block.word2 : block.word0;
  const unsigned odd = index & 2 ? block.word3 : block.word1;
  return index & 1 ? odd : even;
}
inline long long philox64(PhiloxBlock& block, long long seed, long long offset, long long index) {
  block.fill(seed, offset, (unsigned long long)index >> 1);
  const unsigned low = index & 1 ? block.word2 : block.word0;
  const unsigned high = index & 1 ? block.word3 : block.word1;
  return (long long)((unsigned long long)high << 32 | low);
}

}  // namespace hd
