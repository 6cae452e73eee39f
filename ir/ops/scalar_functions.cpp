#include "ir/ops/scalar_functions.h"

#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>

namespace heddle::op_functions {
namespace {

uint64_t u(int64_t v) { return static_cast<uint64_t>(v); }
int64_t wrap(uint64_t v) { return static_cast<int64_t>(v); }

// Returns erfinv(1 - c) with an error below 0.2 % for c <= 2^-20. The value follows from the first
// term of the asymptotic series erfc(y) = exp(-y^2) / (y sqrt(pi)) (...), with c = erfc(y).
double erfinvNearOne(double c) {
  const double log = -std::log(c);
  const double square = log - 0.5 * std::log(M_PI * log);
  return std::sqrt(log - 0.5 * std::log(M_PI * square));
}

// Returns erfinv(x) with single precision, for 1 - x >= 2^-24. Source: M. Giles, "Approximating the
// erfinv function" (2010).
double erfinvStart(double x) {
  double w = -std::log((1 - x) * (1 + x));
  double p = 0;
  if (w < 5) {
    w -= 2.5;
    for (double c : {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                     -0.00125372503, -0.00417768164, 0.246640727, 1.50140941}) {
      p = p * w + c;
    }
  } else {
    w = std::sqrt(w) - 3;
    for (double c : {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                     -0.0076224613, 0.00943887047, 1.00167406, 2.83297682}) {
      p = p * w + c;
    }
  }
  return p * x;
}

}  // namespace

double lgamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

double erfinv(double x) {
  if (!(std::fabs(x) < 1)) {
    return std::fabs(x) == 1 ? std::copysign(std::numeric_limits<double>::infinity(), x)
                             : std::numeric_limits<double>::quiet_NaN();
  }
  // `error` is erf(y) - a. For a >= 0.5 it is computed as (1 - a) - erfc(y): 1 - a is then exact,
  // and erfc(y) has more correct digits than 1 - erf(y).
  const double a = std::fabs(x);
  double y = 1 - a < 0x1p-20 ? erfinvNearOne(1 - a) : erfinvStart(a);
  for (int i = 0; i < 3; ++i) {
    const double error = a < 0.5 ? std::erf(y) - a : (1 - a) - std::erfc(y);
    const double step = error * (std::sqrt(M_PI) / 2) * std::exp(y * y);
    // A step of Halley's method. It uses that the second derivative of erf is -2 y times the first.
    y -= step / (1 + y * step);
  }
  return std::copysign(y, x);
}

double roundHalfEven(double x) {
  const double low = std::floor(x);
  const double rest = x - low;
  if (rest == 0 || std::isnan(rest)) return x;
  const bool up = rest > 0.5 || (rest == 0.5 && std::fmod(low, 2) != 0);
  return std::copysign(up ? low + 1 : low, x);
}

double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

double remainder(double a, double b) {
  const double mod = std::fmod(a, b);
  return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod;
}

int64_t fmod(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

int64_t remainder(int64_t a, int64_t b) {
  const int64_t mod = fmod(a, b);
  return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod;
}

double divFloor(double a, double b) {
  if (b == 0) return a / b;
  const double mod = std::fmod(a, b);
  double quotient = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double low = std::floor(quotient);
  return quotient - low > 0.5 ? low + 1 : low;
}

int64_t divTrunc(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? wrap(0 - u(a)) : a / b;
}

int64_t divFloor(int64_t a, int64_t b) {
  const int64_t quotient = divTrunc(a, b);
  return fmod(a, b) != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t pow(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  uint64_t result = 1;
  uint64_t power = u(base);
  for (; exponent > 0; exponent >>= 1, power *= power) {
    if ((exponent & 1) != 0) result *= power;
  }
  return wrap(result);
}

double powByNumber(const double* a) {
  if (a[1] == 0.5) return std::sqrt(a[0]);
  return a[1] == -0.5 ? 1.0 / std::sqrt(a[0]) : std::pow(a[0], a[1]);
}

int64_t shiftLeft(int64_t a, int64_t by) { return by < 0 || by > 63 ? 0 : wrap(u(a) << by); }

int64_t shiftRight(int64_t a, int64_t by) { return a >> (by < 0 || by > 63 ? 63 : by); }

namespace {

using PhiloxWords = std::array<uint32_t, 4>;

// Returns block number `counter` of Philox4x32-10 (Salmon et al. 2011).
PhiloxWords philoxBlock(int64_t seed, int64_t offset, uint64_t counter) {
  uint32_t key[] = {static_cast<uint32_t>(u(seed)), static_cast<uint32_t>(u(seed) >> 32)};
  PhiloxWords word = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                      static_cast<uint32_t>(u(offset)), static_cast<uint32_t>(u(offset) >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t even = uint64_t{0xD2511F53} * word[0];
    const uint64_t odd = uint64_t{0xCD9E8D57} * word[2];
    word[0] = static_cast<uint32_t>(odd >> 32) ^ word[1] ^ key[0];
    word[1] = static_cast<uint32_t>(odd);
    word[2] = static_cast<uint32_t>(even >> 32) ^ word[3] ^ key[1];
    word[3] = static_cast<uint32_t>(even);
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return word;
}

}  // namespace

int64_t philox32(int64_t seed, int64_t offset, int64_t index) {
  return philoxBlock(seed, offset, u(index) / 4)[u(index) % 4];
}

int64_t philox64(int64_t seed, int64_t offset, int64_t index) {
  const PhiloxWords words = philoxBlock(seed, offset, u(index) / 2);
  const size_t low = u(index) % 2 * 2;
  return wrap(uint64_t{words[low + 1]} << 32 | words[low]);
}

}  // namespace heddle::op_functions
