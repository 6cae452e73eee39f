#pragma once

#include <cstdint>

// Reference functions of the op table that the standard library lacks. Integers wrap.
namespace heddle::op_functions {

// Logarithm of |gamma(x)|; unlike std::lgamma it writes no global.
double lgamma(double x);
// y with erf(y) = x: inf at 1, -inf at -1, NaN outside; within 2 ulp.
double erfinv(double x);
// PyTorch's: to nearest, halves to even, whatever the rounding mode of the caller.
double roundHalfEven(double x);
double sign(double x);  // 0 of zeros and of NaN

// Of the sign of b, as Python's %; b == 0 gives NaN of floats and 0 of integers.
double remainder(double a, double b);
int64_t remainder(int64_t a, int64_t b);
int64_t fmod(int64_t a, int64_t b);  // of the sign of a; b == 0 gives 0
// a / b rounded down or toward zero; b == 0 gives a / b of floats and 0 of integers.
double divFloor(double a, double b);
int64_t divFloor(int64_t a, int64_t b);
int64_t divTrunc(int64_t a, int64_t b);
// A negative exponent gives the reciprocal toward zero, and 0 for the base 0.
int64_t pow(int64_t base, int64_t exponent);
// a[0] to a power that is a number, not a tensor (isPowByNumber).
double powByNumber(const double* a);

// Bits shifted out are lost; by less than 0 or more than 63 everything is.
int64_t shiftLeft(int64_t a, int64_t by);
int64_t shiftRight(int64_t a, int64_t by);  // copies the sign

// The first two words of Philox4x32-10, the second in the upper half. Key: the halves of `seed`,
// low first; counter: the halves of `index`, then of `offset`. J. Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011.
int64_t philox(int64_t seed, int64_t offset, int64_t index);

}  // namespace heddle::op_functions
