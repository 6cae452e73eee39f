// Functions of the op table for generated CUDA kernels, after cuda_runtime.h.

namespace hd {

__device__ inline float abs(float x) { return ::fabsf(x); }
__device__ inline double abs(double x) { return ::fabs(x); }
__device__ inline long long abs(long long x) { return x < 0 ? -x : x; }
__device__ inline bool abs(bool x) { return x; }
__device__ inline float exp(float x) { return ::expf(x); }
__device__ inline double exp(double x) { return ::exp(x); }
__device__ inline float log(float x) { return ::logf(x); }
__device__ inline double log(double x) { return ::log(x); }
__device__ inline float sqrt(float x) { return ::sqrtf(x); }
__device__ inline double sqrt(double x) { return ::sqrt(x); }
__device__ inline float rsqrt(float x) { return ::rsqrtf(x); }
__device__ inline double rsqrt(double x) { return ::rsqrt(x); }
__device__ inline float tanh(float x) { return ::tanhf(x); }
__device__ inline double tanh(double x) { return ::tanh(x); }
__device__ inline float erf(float x) { return ::erff(x); }
__device__ inline double erf(double x) { return ::erf(x); }
__device__ inline float sin(float x) { return ::sinf(x); }
__device__ inline double sin(double x) { return ::sin(x); }
__device__ inline float cos(float x) { return ::cosf(x); }
__device__ inline double cos(double x) { return ::cos(x); }
__device__ inline float pow(float x, float y) { return ::powf(x, y); }
__device__ inline double pow(double x, double y) { return ::pow(x, y); }
__device__ inline long long pow(long long x, long long y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
  unsigned long long result = 1;
  unsigned long long base = (unsigned long long)x;
  for (; y > 0; y >>= 1, base *= base) {
    if (y & 1) result *= base;
  }
  return (long long)result;
}
__device__ inline bool pow(bool x, bool y) { return x || !y; }

// A NaN on either side wins.
__device__ inline float maximum(float a, float b) { return a > b || a != a ? a : b; }
__device__ inline double maximum(double a, double b) { return a > b || a != a ? a : b; }
__device__ inline long long maximum(long long a, long long b) { return a > b ? a : b; }
__device__ inline bool maximum(bool a, bool b) { return a || b; }
__device__ inline float minimum(float a, float b) { return a < b || a != a ? a : b; }
__device__ inline double minimum(double a, double b) { return a < b || a != a ? a : b; }
__device__ inline long long minimum(long long a, long long b) { return a < b ? a : b; }
__device__ inline bool minimum(bool a, bool b) { return a && b; }
__device__ inline float relu(float x) { return x < 0 ? 0.0f : x; }
__device__ inline double relu(double x) { return x < 0 ? 0.0 : x; }
__device__ inline long long relu(long long x) { return x < 0 ? 0 : x; }
__device__ inline bool relu(bool x) { return x; }

}  // namespace hd
