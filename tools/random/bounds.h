#pragma once

#include <limits>
#include <string>
#include <vector>

#include "ir/graph/fusion.h"
#include "ir/reference/elements.h"
#include "ir/reference/reference.h"
#include "ir/types/host_tensor.h"

namespace heddle::random {

// Computes, for each element, how far a correct result may be from the reference. A correct device
// may use a different libm, order of summation or library than the reference. The bounds allow
// these differences and are still narrow.
//
// The reference (ir/reference/reference.h) evaluates every value v. Each element also gets a bound
// e on |result of the device - v|, for a device that follows the op table. The rules are:
//   * Inputs, constants, sizes and iota have e = 0.
//   * A pointwise op for which isExactOp() is true (add, div, sqrt, floor, comparisons, casts,
//     where, ...) adds nothing, because every correct device gives the same result.
//   * Every other pointwise op adds kOpUlps units in the last place of the type in which the op
//     computes. It also adds the change of the result if the operands change by kOperandUlps units.
//     lgamma, and an op whose text in the op table consists of several operations, also add two
//     units of their largest operand, because intermediate terms may cancel.
//   * The bounds of a pointwise op whose operands have e > 0 are found by sampling. (Exceptions:
//     `where` passes on the bound of the chosen operand, and ops that compute integers follow the
//     rule for unknown results below.) The op is evaluated in f32 or double, without rounding to
//     its result type, with each operand at v, v - e and v + e. Further samples are zero, the
//     nearest integer, and the samples of the other operands, as far as they are between v - e and
//     v + e. The bound is the largest distance of a result from the result for the values v.
//   * fmod and remainder jump where the quotient passes an integer. If the quotient may pass an
//     integer, any value between 0 and the divisor is possible.
//   * Both ends of the range of possible results are rounded to the dtype of the result. Results of
//     type bf16, f16 and f8 are therefore usually exact.
//   * A sum, cumsum, matrix product or scatter_add of n terms adds n roundings of the accumulator's
//     type, relative to the sum of the absolute values of the terms. The reduction prod of n
//     elements adds n roundings relative to its result. A maximum or minimum adds nothing. Integers
//     are exact in any order.
//   * Ops that move elements move the bounds in the same way.
// A result is unknown (e = kUnknown) if it depends on an unknown value, or if its samples differ in
// an essential way. Samples differ in this way if they are unequal bools or integers, or if only
// some of them are NaN or infinite. This happens for comparisons and casts to integers near a jump,
// at poles, and near overflow. The indices of an argsort are unknown if two orders are possible. If
// all samples are NaN, or the same infinity, the result is usually exact.
//
// An element is compared if e <= conditionLimit(dtype) * max(1, |v|). It is right if |got - v| <=
// e. If e = 0, both must be equal, where -0.0 equals 0.0 and NaN matches NaN. Elements with a
// larger e are excluded from the comparison and only counted.
inline constexpr double kUnknown = std::numeric_limits<double>::infinity();
// The entry in Bounded::errors for a zero whose sign is not defined. For example, maximum(0.0,
// -0.0) may be either zero.
inline constexpr double kZeroOfAnySign = -1;
inline constexpr double kOpUlps = 16;
inline constexpr double kOperandUlps = 2;

struct Bounded {
  HostTensor value;            // from the reference
  std::vector<double> errors;  // per element: 0, a bound, kUnknown or kZeroOfAnySign
};

// Returns the value with the bound 0 for each element.
Bounded exactly(HostTensor value);

// Evaluates one expression. operands[i] is the value of expr.inputs[i].
Bounded evaluateBounded(const ReferenceContext& context, const Expression& expr,
                        const std::vector<const Bounded*>& operands);

// Evaluates a fusion and returns all outputs, in order.
std::vector<Bounded> evaluateBounded(const Fusion& fusion, const ReferenceInputs& inputs,
                                     const SizeBindings& sizes);

// Returns whether a pointwise op gives the same result on every device for the same operands,
// except for the sign of a zero or of a NaN.
bool isExactOp(const OpDef& op);

// Returns the largest e / max(1, |v|) with which an element is compared.
double conditionLimit(DType dtype);

struct Comparison {
  int64_t elements = 0;
  int64_t compared = 0;
  int64_t exact = 0;  // compared elements that must be equal
  int64_t wrong = 0;
  std::string first_wrong;  // such as "[3, 5]: got 1.5, expected 1.25 within 1e-7"
  Comparison& operator+=(const Comparison& other);
};
Comparison compare(const HostTensor& got, const Bounded& expected);

// --- parts of the implementation -----------------------------------------------------------------

// Returns the distance between neighbouring numbers near 1, in the type in which values of `dtype`
// are computed.
double computeUlp(DType dtype);
// Returns the bound for a result that is rounded to `dtype`. The unrounded result is within `error`
// of `raw`, and the reference is `value`.
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
// Evaluates the op of `expr` with `operands` instead of the operands of `expr`. Returns the
// elements of the result, which must have the type f64. Each operand must be an f64 tensor, except
// for indices, which keep their type.
std::vector<double> applyTo(const ReferenceContext& context, const Expression& expr,
                            const std::vector<HostTensor>& operands);
// Returns an f64 tensor of `values` with the sizes of `like`.
HostTensor doubles(const HostTensor& like, const std::vector<double>& values);
std::vector<double> absolutes(const HostTensor& tensor);

}  // namespace heddle::random
