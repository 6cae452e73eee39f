// Functions of the op table for generated C++ kernels, after cpu_runtime.h. The declarations of libm
// carry the simd attribute, so that vectorized loops call libmvec.

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
