#pragma once

#include <limits>
#include <string>
#include <vector>

#include "ir/graph/fusion.h"
#include "ir/reference/elements.h"
#include "ir/reference/reference.h"
#include "ir/types/host_tensor.h"

namespace heddle::random {

// Computes, element by element, how far a correct result may be from the reference. Results that
// use another libm, another order of summation or another library can therefore be checked with a
// bound that is neither a guess nor loose.
//
// The reference evaluates every value. Each element also gets a bound e on |computed - reference|,
// for a device that follows the op table:
//   * Inputs, constants and sizes: e = 0.
//   * A pointwise op that IEEE 754 defines (isExactOp: add, div, sqrt, floor, comparisons, casts,
//     where, ...) adds nothing. Any other op adds kOpUlps units in the last place of the type in
//     which it computes, and the change of its result if its operands change by kOperandUlps. This
//     covers ops whose text consists of several operations.
//   * Operands with e > 0 are propagated by sampling. The op is evaluated in double, without
//     rounding, with each operand at v, v - e, v + e and, if they are in this range, at zero, the
//     nearest integer and the samples of the other operands. The largest distance is the bound.
//     fmod and remainder jump where the quotient passes an integer. If it may pass one, any value
//     between 0 and the divisor is possible.
//   * The result is rounded to its dtype at both ends of the range, so a bf16 or f16 is mostly
//     exact.
//   * Sums, matrix products and scans add n roundings of the accumulator's type, relative to the
//     sum of absolute values, to the bounds of the elements. Integers are exact in any order.
//   * Ops that move elements move the bounds.
// A result is unknown if its samples differ in kind (bool, integer, or NaN or infinity against a
// number), or if it depends on an unknown value. This is the case for floor, comparisons, casts to
// integers and sorts near a jump, for poles, and for overflow at the edge. NaN and infinities that
// all samples share are exact.
//
// An element is compared if it is well conditioned: e <= conditionLimit(dtype) * max(1, |v|). Then
// |got - v| <= e must hold. With e = 0 both must be equal, where -0.0 equals 0.0; NaN matches NaN.
// All other elements are counted as excluded.
inline constexpr double kUnknown = std::numeric_limits<double>::infinity();
// The value is correct but may have the other sign: a zero that a maximum selects from two zeros.
inline constexpr double kZeroOfAnySign = -1;
inline constexpr double kOpUlps = 16;
inline constexpr double kOperandUlps = 2;

struct Bounded {
  HostTensor value;            // from the reference
  std::vector<double> errors;  // per element: 0, a bound, kUnknown or kZeroOfAnySign
};

Bounded exactly(HostTensor value);

// Evaluates one expression. operands[i] belongs to expr.inputs[i].
Bounded evaluateBounded(const ReferenceContext& context, const Expression& expr,
                        const std::vector<const Bounded*>& operands);

// Evaluates a fusion and returns all outputs, in order.
std::vector<Bounded> evaluateBounded(const Fusion& fusion, const ReferenceInputs& inputs,
                                     const SizeBindings& sizes);

// Returns whether the result of the op is the same on every device for the same operands.
bool isExactOp(const OpDef& op);

double conditionLimit(DType dtype);

struct Comparison {
  int64_t elements = 0;
  int64_t compared = 0;
  int64_t exact = 0;  // compared elements that must be equal
  int64_t wrong = 0;
  std::string first_wrong;  // "[3, 5]: got 1.5, expected 1.25 within 1e-7"
  Comparison& operator+=(const Comparison& other);
};
Comparison compare(const HostTensor& got, const Bounded& expected);

// --- parts of the implementation -----------------------------------------------------------------

// Returns the distance between neighbouring numbers near 1, in the type in which values of `dtype`
// are computed.
double computeUlp(DType dtype);
// Returns the bound of round(v), where v is within `error` of `raw` and the reference is `value`.
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
// Applies the op of `expr` to other tensors: f64 for values and errors, i64 for indices.
std::vector<double> applyTo(const ReferenceContext& context, const Expression& expr,
                            const std::vector<HostTensor>& operands);
// Returns a tensor of f64 with the sizes of `like`.
HostTensor doubles(const HostTensor& like, const std::vector<double>& values);
std::vector<double> absolutes(const HostTensor& tensor);

}  // namespace heddle::random
