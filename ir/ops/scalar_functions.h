#pragma once

#include <cstdint>

// Reference functions of the op table that the standard library lacks. Integers wrap on overflow.
namespace heddle::op_functions {

// Returns the logarithm of |gamma(x)|. Unlike std::lgamma, the function writes no global variable.
double lgamma(double x);
// Returns the inverse error function of x, that is, the y with erf(y) = x. The error is at most 2
// ulp. The result is inf for x = 1, -inf for x = -1, and NaN outside of [-1, 1].
double erfinv(double x);
// Rounds to the nearest integer, ties to even, as PyTorch does. The result does not depend on the
// rounding mode of the caller.
double roundHalfEven(double x);
// Returns -1, 0 or 1. It returns 0 for zeros and NaN.
double sign(double x);

// Return the remainder of a / b with the sign of b, as % does in Python. For b == 0, the result is
// NaN for floats and 0 for integers.
double remainder(double a, double b);
int64_t remainder(int64_t a, int64_t b);
// Returns the remainder of a / b with the sign of a, or 0 for b == 0.
int64_t fmod(int64_t a, int64_t b);
// Return a / b, rounded down (divFloor) or toward zero (divTrunc). For b == 0, floats give a / b
// (an infinity or NaN), and integers give 0.
double divFloor(double a, double b);
int64_t divFloor(int64_t a, int64_t b);
int64_t divTrunc(int64_t a, int64_t b);
// Returns base to the power exponent. With a negative exponent, the exact result is rounded toward
// zero, and base 0 gives 0.
int64_t pow(int64_t base, int64_t exponent);
// Returns a[0] to the power a[1], for a power that is a scalar in host memory (isPowByNumber() in
// ir/graph/compute_type.h). As in PyTorch, the function computes sqrt for the power 0.5, and 1 /
// sqrt for the power -0.5.
double powByNumber(const double* a);

// Shift `a` by `by` bits. shiftRight() copies the sign into the upper bits. If `by` is negative or
// above 63, shiftLeft() returns 0, and shiftRight() returns -1 for a negative `a`, else 0.
int64_t shiftLeft(int64_t a, int64_t by);
int64_t shiftRight(int64_t a, int64_t by);

// Returns the first two 32-bit words of a Philox4x32-10 block. Word 0 is the lower half of the
// result, word 1 the upper half. The key consists of the lower and the upper half of `seed`. The
// counter consists of four words: the lower and the upper half of `index`, then the lower and the
// upper half of `offset`. Source: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011.
int64_t philox(int64_t seed, int64_t offset, int64_t index);

}  // namespace heddle::op_functions
