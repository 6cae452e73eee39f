// Math functions of f32 for generated C++ kernels. A kernel source contains this text after
// cpu_runtime.h. The functions have no branches, tables or calls, so the compiler can vectorize
// loops over them. The result for an element has the same bits in every vector lane, and also in
// the part of a loop that is not vectorized. Errors are at most 2 units in the last place. Comments
// name the function that each polynomial interpolates at Chebyshev nodes.

namespace hd {

#ifdef __FMA__
HD_INLINE float mad(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
HD_INLINE float mad(float a, float b, float c) { return a * b + c; }
#endif

// The result of nearest().
struct Whole {
  float number;
  int integer;
};
// Returns the integer nearest to x, as a float and as an int. Requires |x| < 2^22.
HD_INLINE Whole nearest(float x) {
  const float shifted = x + 12582912.0f;  // 1.5 * 2^23: a float of this size has no fraction
  return {shifted - 12582912.0f, (int)(bitsOf(shifted) - 0x4b400000u)};
}
// Returns 2^n. Requires -126 <= n <= 127.
HD_INLINE float powerOf2(int n) { return floatOf((unsigned)(n + 127) << 23); }

// The result of reduceExp().
struct Reduced {
  int n;
  float expm1;
};
// Splits x = n log(2) + r with |r| <= log(2) / 2. Returns n and expm1(r).
HD_INLINE Reduced reduceExp(float x) {
  const Whole n = nearest(x * 1.44269504f);
  const float r = mad(n.number, -1.42860677e-6f, mad(n.number, -0.693145752f, x));
  float p = 1.3926927e-3f;  // (expm1(r) - r) / r^2
  p = mad(p, r, 8.363774e-3f);
  p = mad(p, r, 4.166655e-2f);
  p = mad(p, r, 1.6666573e-1f);
  p = mad(p, r, 0.5f);
  return {n.integer, mad(p * r, r, r)};
}

// Return max(x, low) and min(x, high). If x is NaN, they return NaN.
HD_INLINE float atLeast(float x, float low) { return x < low ? low : x; }
HD_INLINE float atMost(float x, float high) { return x > high ? high : x; }

// If x is out of range, a comparison at the end of exp(), expm1() or tanh() replaces the result. If
// these functions limited x at their start instead, the compiler would add a select to every
// intermediate result.

HD_INLINE float exp(float x) {
  const Reduced e = reduceExp(x);
  // Scales in two steps, because 2^n alone may overflow or underflow.
  const int half = e.n >> 1;
  const float inside = (e.expm1 + 1.0f) * powerOf2(half) * powerOf2(e.n - half);
  const float above = x < -105.0f ? 0.0f : inside;
  return x > 90.0f ? infF32() : above;
}

// Kernels call functions such as nearExp() for results that are rounded to 16 bits or less
// (OpDef::rounded_text in ir/ops/op.h). On the CPU, faster approximations would not save time.
HD_INLINE float nearExp(float x) { return exp(x); }
HD_INLINE float nearDivision(float x, float y) { return x / y; }

// Returns x / (1 + t) for t >= 0.
HD_INLINE float overOnePlus(float x, float t) { return x / (1.0f + t); }
inline double overOnePlus(double x, double t) { return x / (1.0 + t); }

HD_INLINE float expm1(float x) {
  const Reduced e = reduceExp(x);
  const float scale = powerOf2(e.n - 1);
  const float large = 2.0f * mad(scale, e.expm1, scale - 0.5f);
  const float inside = e.n == 0 ? (x == 0.0f ? x : e.expm1) : large;
  const float above = x < -20.0f ? -1.0f : inside;
  return x > 88.75f ? infF32() : above;
}

HD_INLINE float tanh(float x) {
  const float a = __builtin_fabsf(x);
  const Reduced e = reduceExp(2.0f * a);
  const float scale = powerOf2(e.n);
  const float grown = mad(scale, e.expm1, scale - 1.0f);  // expm1(2 |x|)
  const float inside = grown / (grown + 2.0f);
  return __builtin_copysignf(a > 10.0f ? 1.0f : inside, x);
}

HD_INLINE float log(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const unsigned bits = bitsOf(tiny ? x * 8388608.0f : x);
  // x = 2^n (1 + f), sqrt(1/2) <= 1 + f < sqrt(2)
  const unsigned shifted = bits - 0x3f3504f3u;
  const float n = (float)((int)shifted >> 23) - (tiny ? 23.0f : 0.0f);
  const float f = floatOf((shifted & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  float p = -7.920819e-2f;  // (log1p(f) - f + f^2 / 2) / f^3
  p = mad(p, f, 1.2650813e-1f);
  p = mad(p, f, -1.3004331e-1f);
  p = mad(p, f, 1.4211674e-1f);
  p = mad(p, f, -1.6640595e-1f);
  p = mad(p, f, 2.0001112e-1f);
  p = mad(p, f, -2.500032e-1f);
  p = mad(p, f, 3.333333e-1f);
  const float square = f * f;
  const float low = mad(n, -2.12194440e-4f, mad(square * f, p, -0.5f * square));
  const float finite = mad(n, 0.693359375f, f + low);
  const float other = x < 0.0f ? nanF32() : x == 0.0f ? -infF32() : x;
  return (x > 0.0f) & (x < infF32()) ? finite : other;
}

HD_INLINE float log1p(float x) {
  const float sum = 1.0f + x;
  const float lost = x - (sum - 1.0f);
  const float result = log(sum) + lost / sum;
  return (sum > 0.0f) & (sum < infF32()) ? (x == 0.0f ? x : result) : log(sum);
}

HD_INLINE float nearSoftplus(float x, float beta, float threshold) {
  return x * beta > threshold ? x : log1p(exp(x * beta)) / beta;
}

HD_INLINE float erf(float x) {
  const float a = __builtin_fabsf(x);
  const float s = a * a;
  float near = 8.20417e-05f;  // erf(x) / x - 1, as a function of x^2
  near = mad(near, s, -8.1029156e-4f);
  near = mad(near, s, 5.1974873e-3f);
  near = mad(near, s, -2.685796e-2f);
  near = mad(near, s, 1.12836696e-1f);
  near = mad(near, s, -3.7612632e-1f);
  near = mad(near, s, 1.2837917e-1f);
  const float b = atMost(a, 4.0f);
  float far = -1.6430637e-6f;  // -log(erfc(|x|))
  far = mad(far, b, 4.616386e-5f);
  far = mad(far, b, -5.9758575e-4f);
  far = mad(far, b, 4.762626e-3f);
  far = mad(far, b, -2.6427638e-2f);
  far = mad(far, b, 1.10087164e-1f);
  far = mad(far, b, 6.318239e-1f);
  far = mad(far, b, 1.130231f);
  far = mad(far, b, -3.1853965e-4f);
  const float tail = 1.0f - exp(-far);
  return a < 0.9375f ? mad(near, x, x) : __builtin_copysignf(tail, x);
}

// On the CPU, this sum takes no more time than erf(). Its error is that of the sum 1 + erf(-x).
HD_INLINE float nearErfc(float x) { return 1.0f + erf(-x); }

}  // namespace hd
