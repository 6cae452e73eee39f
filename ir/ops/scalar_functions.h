#pragma once

#include <cstdint>

// Reference functions of the op table that the standard library lacks or defines differently.
// Integers wrap on overflow.
namespace heddle::op_functions {

// Returns the logarithm of |gamma(x)|. Unlike std::lgamma, the function writes no global variable.
double lgamma(double x);
// Returns the inverse error function of x, that is, the y with erf(y) = x. The error is at most 2
// ulp. The result is inf for x = 1, -inf for x = -1, and NaN if |x| > 1.
double erfinv(double x);
// Rounds to the nearest integer, ties to even, as PyTorch does. The result does not depend on the
// rounding mode of the caller.
double roundHalfEven(double x);
// Returns -1, 0 or 1. It returns 0 for zeros and NaN.
double sign(double x);

// These functions return the remainder of a / b with the sign of b, as % does in Python. For b ==
// 0, the result is NaN for floats and 0 for integers.
double remainder(double a, double b);
int64_t remainder(int64_t a, int64_t b);
// Returns the remainder of a / b with the sign of a, or 0 for b == 0.
int64_t fmod(int64_t a, int64_t b);
// These functions return a / b, rounded down (divFloor) or toward zero (divTrunc). For b == 0,
// floats give a / b (an infinity or NaN), and integers give 0.
double divFloor(double a, double b);
int64_t divFloor(int64_t a, int64_t b);
int64_t divTrunc(int64_t a, int64_t b);
// Returns base to the power exponent. If the exponent is negative, the exact result is rounded
// toward zero, and base 0 gives 0.
int64_t pow(int64_t base, int64_t exponent);
// Returns a[0] to the power a[1], for a power that is a scalar in host memory (isPowByNumber() in
// ir/graph/compute_type.h). As in PyTorch, the function computes sqrt for the power 0.5, and 1 /
// sqrt for the power -0.5.
double powByNumber(const double* a);

// Shift `a` by `by` bits. shiftRight() copies the sign into the upper bits. If `by` is negative or
// above 63, shiftLeft() returns 0, and shiftRight() returns -1 for a negative `a`, else 0.
int64_t shiftLeft(int64_t a, int64_t by);
int64_t shiftRight(int64_t a, int64_t by);

// These functions return random bits from Philox4x32-10 (J. Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011). One block of the generator has four words of 32 bits. The
// key of a block consists of the lower and the upper half of `seed`. The counter of a block
// consists of the two halves of a number n and then the two halves of `offset`. The lower half
// always comes first. philox32() returns word `index` mod 4 of the block n = `index` div 4: a
// number below 2^32. philox64() returns two words of the block n = `index` div 2: words 0 and 1 if
// `index` is even, else words 2 and 3. The first of these words is the lower half of the result.
// `index` counts as an unsigned number.
int64_t philox32(int64_t seed, int64_t offset, int64_t index);
int64_t philox64(int64_t seed, int64_t offset, int64_t index);

}  // namespace heddle::op_functions
