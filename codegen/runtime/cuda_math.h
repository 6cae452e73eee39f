// Functions of the op table (ir/ops) for generated CUDA kernels. A kernel source contains this text
// after cuda_memory.h. Functions such as exp() call CUDA's standard math functions. nearExp(),
// nearErfc(), nearSin(), nearCos(), nearSoftplus(), nearDivided() and overOnePlus() for floats are
// faster and less exact.

#define HD_UNARY(name)                                           \
  __device__ inline float name(float x) { return ::name##f(x); } \
  __device__ inline double name(double x) { return ::name(x); }
#define HD_BINARY(name)                                                      \
  __device__ inline float name(float x, float y) { return ::name##f(x, y); } \
  __device__ inline double name(double x, double y) { return ::name(x, y); }

namespace hd {

HD_UNARY(exp)
HD_UNARY(exp2)
HD_UNARY(expm1)
HD_UNARY(log)
HD_UNARY(log2)
HD_UNARY(log10)
HD_UNARY(log1p)
HD_UNARY(sin)
HD_UNARY(cos)
HD_UNARY(tan)
HD_UNARY(asin)
HD_UNARY(acos)
HD_UNARY(atan)
HD_UNARY(sinh)
HD_UNARY(cosh)
HD_UNARY(tanh)
HD_UNARY(asinh)
HD_UNARY(acosh)
HD_UNARY(atanh)
HD_UNARY(erf)
HD_UNARY(erfc)
HD_UNARY(erfinv)
HD_UNARY(lgamma)
HD_UNARY(sqrt)
HD_UNARY(rsqrt)
HD_UNARY(floor)
HD_UNARY(ceil)
HD_UNARY(trunc)
HD_UNARY(fabs)
HD_BINARY(pow)
HD_BINARY(atan2)
HD_BINARY(fmod)
HD_BINARY(copysign)
__device__ inline float round(float x) { return ::rintf(x); }
__device__ inline double round(double x) { return ::rint(x); }
__device__ inline bool signbit(float x) { return __float_as_int(x) < 0; }
__device__ inline bool signbit(double x) { return __double_as_longlong(x) < 0; }
__device__ inline bool isinf(float x) { return ::fabsf(x) == infF32(); }
__device__ inline bool isinf(double x) { return ::fabs(x) == infF64(); }
__device__ inline bool isfinite(float x) { return ::fabsf(x) < infF32(); }
__device__ inline bool isfinite(double x) { return ::fabs(x) < infF64(); }

__device__ inline long long abs(long long x) { return x < 0 ? -x : x; }
__device__ inline float abs(float x) { return fabs(x); }
__device__ inline double abs(double x) { return fabs(x); }
__device__ inline float sign(float x) { return (float)((x > 0) - (x < 0)); }
__device__ inline double sign(double x) { return (double)((x > 0) - (x < 0)); }
__device__ inline long long sign(long long x) { return (x > 0) - (x < 0); }
__device__ inline bool sign(bool x) { return x; }
__device__ inline float relu(float x) { return x < 0 ? 0.0f : x; }
__device__ inline double relu(double x) { return x < 0 ? 0.0 : x; }
__device__ inline long long relu(long long x) { return x < 0 ? 0 : x; }
__device__ inline long long floor(long long x) { return x; }
__device__ inline long long ceil(long long x) { return x; }
__device__ inline long long round(long long x) { return x; }
__device__ inline long long trunc(long long x) { return x; }
__device__ inline bool signbit(long long x) { return x < 0; }
__device__ inline bool signbit(bool) { return false; }
__device__ inline bool isinf(long long) { return false; }
__device__ inline bool isinf(bool) { return false; }
__device__ inline bool isfinite(long long) { return true; }
__device__ inline bool isfinite(bool) { return true; }
__device__ inline long long bitwise_not(long long x) { return ~x; }
__device__ inline bool bitwise_not(bool x) { return !x; }

// Kernels that divide many values by the same y compute r = reciprocalFor(y) once, and then
// divided(x, y, r) for each x. The result is x / y, rounded to nearest. The product q of x and the
// reciprocal of y has an error of less than two units in the last place. The remainder, x - q * y,
// corrects this error (P. Markstein, "Computation of elementary functions on the IBM RISC
// System/6000 processor", 1990). Two kinds of quotients may differ from x / y in their last bit:
// quotients below 2^-100, because their remainder is subnormal, and quotients by a subnormal y. A
// quotient above 2^127 may become infinite.

// Returns whether y is a normal number.
__device__ inline bool isRegular(float y) {
  const unsigned exponent = __float_as_uint(y) >> 23 & 255u;
  return exponent != 0 && exponent != 255;
}
// Returns a power of two with the sign of y. Its product with y is in [1, 2) if y is normal.
__device__ inline float scaleFor(float y) {
  const int exponent = __float_as_int(y) >> 23 & 255;
  const int bits = exponent == 254 ? 0x00400000 : (254 - exponent) << 23;
  return copysign(exponent == 255 ? 1.0f : __int_as_float(bits), y);
}
__device__ inline float reciprocalFor(float y) { return 1.0f / (y * scaleFor(y)); }
// Returns x / y; r is reciprocalFor(y). The compiler computes `scale`, `divisor` and `weight` once,
// because all calls of a thread have the same y. There are three special cases:
// - If y is not regular, the weight 0 makes q the result.
// - If x is infinite or NaN, q is infinite or NaN too. The excess is then NaN, and fminf() returns
//   its other operand, which is finite and does not change q.
// - If the quotient is 0, the correction is -0, whose addition does not change the sign of q.
__device__ inline float divided(float x, float y, float r) {
  const float scale = scaleFor(y);
  const float divisor = isRegular(y) ? y * scale : nanF32();
  const float weight = isRegular(y) ? r : 0.0f;
  const float scaled = x * scale;
  const float q = scaled * r;
  const float excess = ::fminf(multiplyAdd(q, divisor, -scaled), 0x1.fffffep127f);
  return multiplyAdd(-excess, weight, q);
}

// Returns x / y with an error of at most two units in the last place; r is reciprocalFor(y).
__device__ inline float nearDivided(float x, float y, float r) { return (x * scaleFor(y)) * r; }

// Returns exp(x) with a relative error of at most 2^-17. The square of exp(x / 2) also gives
// results below 2^-126, which nearPowerOfTwo() cannot give.
__device__ inline float nearExp(float x) {
  const float root = nearPowerOfTwo(x * 0x1.715476p-1f);  // log2(e) / 2
  return root * root;
}

// Returns erfc(x) with a relative error of at most 2^-16. For x >= 0, erfc(x) is the product of
// exp(-x^2) and a function that changes slowly. A polynomial in t = 1 / (1 + c x) approximates this
// function with a relative error below 2^-19 for x <= 9.4. For larger x, the result is 0. (The form
// of the approximation is that of M. Abramowitz and I. Stegun, "Handbook of Mathematical
// Functions", 7.1.26; the coefficients are a new fit for the relative error.)
__device__ inline float nearErfc(float x) {
  const float a = ::fabsf(x);
  const float t = nearReciprocal(multiplyAdd(a, 0x1.0a3d70p-1f, 1.0f));
  float p = multiplyAdd(0x1.8b99dcp-4f, t, -0x1.63520cp-2f);
  p = multiplyAdd(p, t, 0x1.3e21eep-2f);
  p = multiplyAdd(p, t, 0x1.4e0896p-4f);
  p = multiplyAdd(p, t, 0x1.180eb2p-2f);
  p = multiplyAdd(p, t, 0x1.2a353ap-2f);
  p = multiplyAdd(p, t, 0x1.2c83e2p-2f);
  const float tail = p * t * nearExp(-(a * a));
  return x < 0 ? 2.0f - tail : tail;
}

// Returns sin(r) for even `sign`, and -sin(r) for odd `sign`, with r = x - k * pi. Requires
// |r| <= pi / 2 + 2^-7 and |k| < 2^15; 2k must be an integer.
// Subtracts pi in three parts (W. Cody and W. Waite, "Software Manual for the Elementary
// Functions", 1980). The first part has so few bits that the first difference is exact if x is
// near k * pi. A polynomial with a relative error below 2^-19 approximates sin(r) / r.
__device__ inline float sinOfRest(float x, float k, unsigned sign) {
  float r = multiplyAdd(k, -0x1.921fb4p+1f, x);
  r = multiplyAdd(k, -0x1.4442d0p-23f, r);
  r = multiplyAdd(k, -0x1.84698ap-47f, r);
  const float square = r * r;
  float p = multiplyAdd(-0x1.84d4dap-13f, square, 0x1.1070dep-7f);
  p = multiplyAdd(p, square, -0x1.55510ep-3f);
  return __uint_as_float(__float_as_uint(r) ^ (sign << 31)) * multiplyAdd(p, square, 1.0f);
}
// nearSin() and nearCos() have a relative error of at most 2^-18. Adding 1.5 * 2^23 rounds x / pi
// to an integer, which the sum then has in its lowest bits.
__device__ inline float nearSin(float x) {
  const float sum = multiplyAdd(x, 0x1.45f306p-2f, 0x1.8p23f);
  const float result = sinOfRest(x, sum - 0x1.8p23f, __float_as_uint(sum));
  return ::fabsf(x) < 0x1p16f ? result : sinOfLarge(x);
}
// With x = (k + 1/2) * pi + r, cos(x) is -sin(r) for even k, and sin(r) for odd k.
__device__ inline float nearCos(float x) {
  const float sum = multiplyAdd(x, 0x1.45f306p-2f, -0.5f) + 0x1.8p23f;
  const float result = sinOfRest(x, (sum - 0x1.8p23f) + 0.5f, __float_as_uint(sum) + 1);
  return ::fabsf(x) < 0x1p16f ? result : cosOfLarge(x);
}

// Returns x / (1 + t) for t >= 0, with an error of at most two units in the last place. Divides x/4
// by (1 + t)/4, because the reciprocal of (1 + t)/4 is a normal number for every finite t.
__device__ inline float overOnePlus(float x, float t) {
  return (x * 0.25f) * nearReciprocal(multiplyAdd(t, 0.25f, 0.25f));
}
__device__ inline double overOnePlus(double x, double t) { return x / (1 + t); }

// maximum() and minimum(): if an operand is NaN, the result is NaN.
__device__ inline float maximum(float a, float b) { return maxOrNan(a, b); }
__device__ inline double maximum(double a, double b) { return (a > b) | (a != a) ? a : b; }
__device__ inline long long maximum(long long a, long long b) { return a > b ? a : b; }
__device__ inline bool maximum(bool a, bool b) { return a | b; }
__device__ inline float minimum(float a, float b) { return minOrNan(a, b); }
__device__ inline double minimum(double a, double b) { return (a < b) | (a != a) ? a : b; }
__device__ inline long long minimum(long long a, long long b) { return a < b ? a : b; }
__device__ inline bool minimum(bool a, bool b) { return a & b; }
// fmax() and fmin(): the result is NaN only if both operands are NaN.
__device__ inline float fmax(float a, float b) { return (a >= b) | (b != b) ? a : b; }
__device__ inline double fmax(double a, double b) { return (a >= b) | (b != b) ? a : b; }
__device__ inline long long fmax(long long a, long long b) { return a > b ? a : b; }
__device__ inline bool fmax(bool a, bool b) { return a | b; }
__device__ inline float fmin(float a, float b) { return (a <= b) | (b != b) ? a : b; }
__device__ inline double fmin(double a, double b) { return (a <= b) | (b != b) ? a : b; }
__device__ inline long long fmin(long long a, long long b) { return a < b ? a : b; }
__device__ inline bool fmin(bool a, bool b) { return a & b; }

// Integer division by 0 gives the quotient 0 and the remainder 0. Division by -1 is a special case,
// because the lowest integer divided by -1 would overflow.
__device__ inline long long div_trunc(long long a, long long b) {
  return b == 0 ? 0 : b == -1 ? (long long)(0ull - (unsigned long long)a) : a / b;
}
__device__ inline long long fmod(long long a, long long b) { return b == 0 || b == -1 ? 0 : a % b; }
__device__ inline long long div_floor(long long a, long long b) {
  return div_trunc(a, b) - (fmod(a, b) != 0 && (a < 0) != (b < 0));
}
__device__ inline float div_trunc(float a, float b) { return trunc(a / b); }
__device__ inline double div_trunc(double a, double b) { return trunc(a / b); }
template <class T>
__device__ inline T divFloorReal(T a, T b) {
  const T mod = fmod(a, b);
  T quotient = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) quotient -= 1;
  const T low = floor(quotient);
  const T nearest = quotient - low > T(0.5) ? low + 1 : low;
  return b == 0 ? a / b : quotient == 0 ? copysign(T(0), a / b) : nearest;
}
__device__ inline float div_floor(float a, float b) { return divFloorReal(a, b); }
__device__ inline double div_floor(double a, double b) { return divFloorReal(a, b); }
template <class T>
__device__ inline T remainderOf(T a, T b) {
  const T mod = fmod(a, b);
  return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod;
}
__device__ inline float remainder(float a, float b) { return remainderOf(a, b); }
__device__ inline double remainder(double a, double b) { return remainderOf(a, b); }
__device__ inline long long remainder(long long a, long long b) { return remainderOf(a, b); }

// Computes a power whose exponent y is a number, not a tensor. For the exponents 0.5 and -0.5, it
// computes roots, as PyTorch does. Apart from rounding, the roots differ from the results of pow()
// only at -0.0 and -inf.
template <class T>
__device__ inline T powByNumber(T x, T y) {
  return y == T(0.5) ? sqrt(x) : y == T(-0.5) ? rsqrt(x) : pow(x, y);
}
__device__ inline long long pow(long long x, long long y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
  unsigned long long result = 1;
  unsigned long long base = (unsigned long long)x;
  for (; y > 0; y >>= 1, base *= base) {
    if (y & 1) result *= base;
  }
  return (long long)result;
}
__device__ inline long long shift_left(long long a, long long by) {
  return by < 0 || by > 63 ? 0 : (long long)((unsigned long long)a << by);
}
__device__ inline long long shift_right(long long a, long long by) {
  return a >> (by < 0 || by > 63 ? 63 : by);
}

template <class T>
__device__ inline T softplusOf(T x, T beta, T threshold) {
  const T soft = log1p(exp(x * beta)) / beta;
  return x * beta > threshold ? x : soft;
}
__device__ inline float softplus(float x, float beta, float threshold) {
  return softplusOf(x, beta, threshold);
}
__device__ inline double softplus(double x, double beta, double threshold) {
  return softplusOf(x, beta, threshold);
}
// Returns softplus(x, beta, threshold) with a relative error of at most 2^-16. With z = x * beta
// and t = exp(-|z|), log(1 + exp(z)) is max(z, 0) + log(1 + t). A polynomial with a relative error
// below 2^-19 approximates log(1 + t) / t for 0 <= t <= 1.
__device__ inline float nearSoftplus(float x, float beta, float threshold) {
  const float z = x * beta;
  const float t = nearExp(-::fabsf(z));
  float p = multiplyAdd(0x1.cf5f7cp-7f, t, -0x1.0ffb54p-4f);
  p = multiplyAdd(p, t, 0x1.319c4ap-3f);
  p = multiplyAdd(p, t, -0x1.e15becp-3f);
  p = multiplyAdd(p, t, 0x1.530a70p-2f);
  p = multiplyAdd(p, t, -0x1.ffddd4p-2f);
  p = multiplyAdd(p, t, 0x1.ffffd6p-1f);
  const float soft = multiplyAdd(t, p, ::fmaxf(z, 0.0f));
  return z > threshold ? x : nearDivision(soft, beta);
}
// Interpolates between a (weight 0) and b (weight 1). For these two weights, the result is exactly
// a or b if b - a does not overflow.
template <class T>
__device__ inline T lerpOf(T a, T b, T weight) {
  return fabs(weight) < T(0.5) ? a + weight * (b - a) : b - (b - a) * (1 - weight);
}
__device__ inline float lerp(float a, float b, float weight) { return lerpOf(a, b, weight); }
__device__ inline double lerp(double a, double b, double weight) { return lerpOf(a, b, weight); }

// Writes the four words of a block of Philox4x32-10 with key `seed` and counter (`counter`,
// `offset`). Source: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
__device__ inline void philoxWords(unsigned* words, long long seed, long long offset,
                                   unsigned long long counter) {
  unsigned key0 = (unsigned)seed, key1 = (unsigned)((unsigned long long)seed >> 32);
  unsigned word0 = (unsigned)counter, word1 = (unsigned)(counter >> 32);
  unsigned word2 = (unsigned)offset, word3 = (unsigned)((unsigned long long)offset >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    unsigned even_high, odd_high;
    const unsigned even = product(0xD2511F53u, word0, even_high);
    const unsigned odd = product(0xCD9E8D57u, word2, odd_high);
    word0 = odd_high ^ word1 ^ key0;
    word1 = odd;
    word2 = even_high ^ word3 ^ key1;
    word3 = even;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  words[0] = word0, words[1] = word1, words[2] = word2, words[3] = word3;
}

// A block that neighbouring elements share. fill() does nothing if the object already holds the
// block.
struct PhiloxBlock {
  unsigned words[4];
  long long of_seed, of_offset;
  unsigned long long of_counter;
  bool filled = false;
  __device__ inline void fill(long long seed, long long offset, unsigned long long counter) {
    if (filled && of_counter == counter && of_seed == seed && of_offset == offset) return;
    filled = true;
    of_seed = seed, of_offset = offset, of_counter = counter;
    philoxWords(words, seed, offset, counter);
  }
};
// philox32() returns the one word of a block that belongs to an index, and philox64() the two
// words.
__device__ inline long long philox32(PhiloxBlock& block, long long seed, long long offset,
                                     long long index) {
  block.fill(seed, offset, (unsigned long long)index >> 2);
  const unsigned even = index & 2 ? block.words[2] : block.words[0];
  const unsigned odd = index & 2 ? block.words[3] : block.words[1];
  return index & 1 ? odd : even;
}
__device__ inline long long philox64(PhiloxBlock& block, long long seed, long long offset,
                                     long long index) {
  block.fill(seed, offset, (unsigned long long)index >> 1);
  const unsigned low = index & 1 ? block.words[2] : block.words[0];
  const unsigned high = index & 1 ? block.words[3] : block.words[1];
  return (long long)((unsigned long long)high << 32 | low);
}

// The object that the kLanes lanes of a vector share if their indices are consecutive. It replaces
// `State`, an object such as PhiloxBlock that an op keeps between elements. The lanes must use the
// object in ascending order.
template <class State, int kLanes>
struct ForLanes;

// philox32(): the first lane computes the words of all lanes. This takes one branch per vector, not
// per lane. philox64() uses `block` and no other member.
template <int kLanes>
struct ForLanes<PhiloxBlock, kLanes> {
  PhiloxBlock block;
  unsigned words[kLanes];
  int lane = 0;  // the next lane
  __device__ inline void fill(long long seed, long long offset, long long index) {
    const unsigned long long counter = (unsigned long long)index >> 2;
    const int skipped = (int)(index & 3);
    if (skipped == 0) {
#pragma unroll
      for (int i = 0; i < kLanes; i += 4) philoxWords(words + i, seed, offset, counter + i / 4);
      return;
    }
    unsigned all[kLanes + 4];
#pragma unroll
    for (int i = 0; i < kLanes + 4; i += 4) philoxWords(all + i, seed, offset, counter + i / 4);
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      words[i] = skipped == 1 ? all[i + 1] : skipped == 2 ? all[i + 2] : all[i + 3];
    }
  }
};
template <int kLanes>
__device__ inline long long philox32(ForLanes<PhiloxBlock, kLanes>& lanes, long long seed,
                                     long long offset, long long index) {
  if (lanes.lane == 0) lanes.fill(seed, offset, index);
  return lanes.words[lanes.lane++];
}
template <int kLanes>
__device__ inline long long philox64(ForLanes<PhiloxBlock, kLanes>& lanes, long long seed,
                                     long long offset, long long index) {
  return philox64(lanes.block, seed, offset, index);
}

}  // namespace hd
