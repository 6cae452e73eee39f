#pragma once

#include <cstdint>

// Reference functions of the op table that the standard library lacks. Integers wrap on overflow.
namespace heddle::op_functions {

// Returns the logarithm of |gamma(x)|. Unlike std::lgamma it writes no global variable.
double lgamma(double x);
// Returns y with erf(y) = x, within 2 ulp: inf for 1, -inf for -1, NaN outside of [-1, 1].
double erfinv(double x);
// Rounds to nearest, ties to even, as PyTorch does. It ignores the rounding mode of the caller.
double roundHalfEven(double x);
double sign(double x);  // 0 for zeros and NaN

// Return the remainder with the sign of b, as % does in Python. For b == 0: NaN for floats, 0 for
// integers.
double remainder(double a, double b);
int64_t remainder(int64_t a, int64_t b);
int64_t fmod(int64_t a, int64_t b);  // has the sign of a; 0 for b == 0
// Return a / b, rounded down (divFloor) or toward zero (divTrunc). For b == 0: a / b for floats, 0
// for integers.
double divFloor(double a, double b);
int64_t divFloor(int64_t a, int64_t b);
int64_t divTrunc(int64_t a, int64_t b);
// A negative exponent gives the reciprocal, rounded toward zero, and 0 for the base 0.
int64_t pow(int64_t base, int64_t exponent);
// Returns a[0] to the power a[1], where the power is a host scalar (isPowByNumber in
// ir/graph/compute_type.h): sqrt for 0.5 and its reciprocal for -0.5, as in PyTorch.
double powByNumber(const double* a);

// Shift `a` by `by` bits. If `by` is negative or above 63, shiftLeft() returns 0 and shiftRight()
// only copies of the sign.
int64_t shiftLeft(int64_t a, int64_t by);
int64_t shiftRight(int64_t a, int64_t by);  // copies the sign

// Returns the first two words of Philox4x32-10, the second one in the upper half. The key is the
// two halves of `seed`, the lower half first; the counter is the halves of `index`, then of
// `offset`. Source: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
int64_t philox(int64_t seed, int64_t offset, int64_t index);

}  // namespace heddle::op_functions
