#pragma once

#include <limits>
#include <string>
#include <vector>

#include "ir/graph/fusion.h"
#include "ir/reference/elements.h"
#include "ir/reference/reference.h"
#include "ir/types/host_tensor.h"

namespace heddle::random {

// How far a right answer may be from the reference, element by element, so that results computed
// with another libm, in another order of summation or by another library can be held to a bound
// that is neither a guess nor loose.
//
// The reference evaluates every value; beside it goes a bound e on |computed - reference| of each
// element, for a device that follows the op table:
//   * inputs, constants and sizes: e = 0.
//   * A pointwise op that IEEE 754 fixes (isExactOp: add, div, sqrt, floor, comparisons, casts,
//     where, ...) adds nothing. Any other may be off by kOpUlps units in the last place of the type
//     in which it computes, and by as much as its result moves when its operands move by
//     kOperandUlps: that covers texts made of several operations.
//   * Operands with e > 0 are carried through by sampling: the op is evaluated, in double and
//   without
//     rounding, where each operand is v, v - e, v + e and, when they lie between, zero, the nearest
//     integer and the other operands' samples; the largest distance is taken. fmod and remainder
//     jump where the quotient passes an integer: when it may, any value between 0 and the divisor
//     is taken to be possible.
//   * The result is rounded to its dtype at both ends, so that a bf16 or f16 mostly comes out
//   exact.
//   * Sums, products, matmuls and scans add n roundings of the accumulator's type to what the
//     elements bring, relative to the sum of the absolute values; integers are exact in any order.
//   * Ops that move elements move the bounds.
// A result whose samples differ in kind (bool, integer, NaN or infinity against a number), or which
// comes from such a one, is unknown: floor, comparisons, casts to integers and sorts near a jump
// end here, as do poles and overflow at the edge. NaN and infinities that all samples share are
// exact.
//
// An element is compared when it is well conditioned: e <= conditionLimit(dtype) * max(1, |v|).
// Then |got - v| <= e must hold: with e = 0 the two are equal, -0.0 being equal to 0.0; NaN matches
// NaN. All others are counted as excluded.
inline constexpr double kUnknown = std::numeric_limits<double>::infinity();
// The value is right but its sign may be another: a zero that a maximum took from two zeros.
inline constexpr double kZeroOfAnySign = -1;
inline constexpr double kOpUlps = 16;
inline constexpr double kOperandUlps = 2;

struct Bounded {
  HostTensor value;            // the reference
  std::vector<double> errors;  // per element: 0, a bound, kUnknown or kZeroOfAnySign
};

Bounded exactly(HostTensor value);

// One expression: operands[i] belongs to expr.inputs[i].
Bounded evaluateBounded(const ReferenceContext& context, const Expression& expr,
                        const std::vector<const Bounded*>& operands);

// All outputs, in order.
std::vector<Bounded> evaluateBounded(const Fusion& fusion, const ReferenceInputs& inputs,
                                     const SizeBindings& sizes);

// Rows of the op table whose result is the same on every device for the same operands.
bool isExactOp(const OpDef& op);

double conditionLimit(DType dtype);

struct Comparison {
  int64_t elements = 0;
  int64_t compared = 0;
  int64_t exact = 0;  // of the compared: those that had to be equal
  int64_t wrong = 0;
  std::string first_wrong;  // "[3, 5]: got 1.5, expected 1.25 within 1e-7"
  Comparison& operator+=(const Comparison& other);
};
Comparison compare(const HostTensor& got, const Bounded& expected);

// --- parts of the implementation -----------------------------------------------------------------

// The distance between neighbours near 1 of the type in which values of `dtype` are computed.
double computeUlp(DType dtype);
// The bound of round(v) for v within `error` of `raw`, when the reference is `value`.
double boundAfterRounding(DType dtype, double raw, double error, double value);

std::vector<double> pointwiseErrors(const ReferenceContext& context, const Expression& expr,
                                    const std::vector<const Bounded*>& operands,
                                    const HostTensor& result);
std::vector<double> reductionErrors(const ReferenceContext& context, const Expression& expr,
                                    const Bounded& operand, const HostTensor& result);
std::vector<double> matmulErrors(const ReferenceContext& context, const Expression& expr,
                                 const std::vector<const Bounded*>& operands,
                                 const HostTensor& result);
std::vector<double> scanErrors(const Expression& expr, const Bounded& operand,
                               const HostTensor& result);
std::vector<double> scatterAddErrors(const ReferenceContext& context, const Expression& expr,
                                     const std::vector<const Bounded*>& operands,
                                     const HostTensor& result);
// The op of `expr` on other tensors: f64 where they stand for values and errors, i64 for indices.
std::vector<double> applyTo(const ReferenceContext& context, const Expression& expr,
                            const std::vector<HostTensor>& operands);
// A tensor of f64 with the sizes of `like`.
HostTensor doubles(const HostTensor& like, const std::vector<double>& values);
std::vector<double> absolutes(const HostTensor& tensor);

}  // namespace heddle::random
