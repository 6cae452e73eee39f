#include "tools/random/bounds.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/base/check.h"
#include "ir/graph/print_values.h"
#include "ir/reference/dense.h"
#include "ir/text/fusion_text.h"

namespace heddle::random {
namespace {

bool anyUnknown(const Bounded& bounded) {
  return std::any_of(bounded.errors.begin(), bounded.errors.end(),
                     [](double e) { return e == kUnknown; });
}

std::vector<double> all(const HostTensor& tensor, double error) {
  return std::vector<double>(static_cast<size_t>(tensor.numel()), error);
}

// Returns the bounds for an op that moves elements, by applying the op to the bounds. Operand 1, if
// there is one, is an index or a fill value.
std::vector<double> movedErrors(const ReferenceContext& context, const Expression& expr,
                                const std::vector<const Bounded*>& operands,
                                const HostTensor& result) {
  std::vector<HostTensor> moved = {doubles(operands[0]->value, operands[0]->errors)};
  for (size_t i = 1; i < operands.size(); ++i) {
    const Bounded& operand = *operands[i];
    const bool is_index = i == 1 && !context.fusion.value(expr.inputs[1]).is_scalar;
    if (is_index && anyUnknown(operand)) return all(result, kUnknown);
    moved.push_back(is_index ? operand.value : doubles(operand.value, operand.errors));
  }
  std::vector<double> errors = applyTo(context, expr, moved);
  for (double& e : errors) {
    // The index is outside of the operand, so every device must give NaN, or 0 for an integer type.
    if (std::isnan(e)) e = 0;
  }
  return errors;
}

std::vector<double> fullErrors(const Bounded& scalar, const HostTensor& result) {
  const double e = scalar.errors[0];
  const double v = toDouble(scalar.value.at(0));
  if (e == 0 || result.numel() == 0) return all(result, 0);
  if (!isFloat(result.dtype) || e == kUnknown) return all(result, kUnknown);
  return all(result, e < 0 ? e : boundAfterRounding(result.dtype, v, e, toDouble(result.at(0))));
}

std::vector<double> errorsOf(const ReferenceContext& context, const Expression& expr,
                             const std::vector<const Bounded*>& operands,
                             const HostTensor& result) {
  switch (expr.op->kind) {
    case OpKind::Constant:
    case OpKind::SizeOf:
    case OpKind::Iota:
      return all(result, 0);
    case OpKind::Pointwise:
      return pointwiseErrors(context, expr, operands, result);
    case OpKind::Reduction:
      return reductionErrors(context, expr, *operands[0], result);
    case OpKind::Matmul:
      return matmulErrors(context, expr, operands, result);
    case OpKind::Full:
      return fullErrors(*operands[0], result);
    case OpKind::Scan:
      return scanErrors(expr, *operands[0], result);
    case OpKind::Scatter:
      if (expr.op->name == "scatter_add") {
        return scatterAddErrors(context, expr, operands, result);
      }
      return movedErrors(context, expr, operands, result);
    case OpKind::Set:
      return operands[0]->errors;
    case OpKind::Broadcast:
    case OpKind::Expand:
    case OpKind::Reshape:
    case OpKind::Permute:
    case OpKind::Slice:
    case OpKind::Diagonal:
    case OpKind::Index:
      return movedErrors(context, expr, operands, result);
  }
  HEDDLE_CHECK(false, "no error bound for {}", expr.op->name);
}

std::string indexText(int64_t linear, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> at(sizes.size());
  for (size_t i = sizes.size(); i-- > 0; linear /= sizes[i]) at[i] = linear % sizes[i];
  return str(at);
}

bool agrees(const Scalar& got, const Scalar& expected, double error) {
  if (!std::holds_alternative<double>(expected)) return got == expected;  // only floats round
  const double g = toDouble(got);
  const double e = toDouble(expected);
  if (std::isnan(e)) return std::isnan(g);
  if (std::isinf(e)) return g == e;
  return std::fabs(g - e) <= std::max(error, 0.0);
}

}  // namespace

Bounded exactly(HostTensor value) {
  std::vector<double> errors(value.numel(), 0);
  return {std::move(value), std::move(errors)};
}

bool isExactOp(const OpDef& op) {
  static const std::set<std::string_view> names = {
      "cast",  "neg",   "abs",      "sqrt",    "reciprocal",  "relu",
      "isnan", "isinf", "isfinite", "signbit", "logical_not", "bitwise_not",
      "sign",  "floor", "ceil",     "round",   "trunc",       "frac",
      "add",   "sub",   "mul",      "div",     "maximum",     "minimum",
      "fmax",  "fmin",  "where",    "clamp",   "fmod",        "threshold"};
  return op.dtype_rule == DTypeRule::Bool || names.contains(op.name);
}

double computeUlp(DType dtype) {
  return std::ldexp(1.0, computeType(dtype) == DType::F64 ? -52 : -23);
}

double boundAfterRounding(DType dtype, double raw, double error, double value) {
  if (error == 0) return 0;
  if (!(error < kUnknown)) return kUnknown;
  double bound = 0;
  for (const double end : {raw - error, raw + error}) {
    const double rounded = toDouble(roundTo(dtype, end));
    const bool same = rounded == value || (std::isnan(rounded) && std::isnan(value));
    const double distance = same ? 0 : std::fabs(rounded - value);
    if (!(distance < kUnknown)) return kUnknown;
    bound = std::max(bound, distance);
  }
  return bound == 0 && value == 0 ? kZeroOfAnySign : bound;
}

double conditionLimit(DType dtype) {
  if (!isFloat(dtype)) return 0;
  if (dtype == DType::F64) return 1e-9;
  return dtype == DType::F32 ? 1e-3 : 5e-2;
}

HostTensor doubles(const HostTensor& like, const std::vector<double>& values) {
  HostTensor tensor(DType::F64, like.sizes);
  std::copy(values.begin(), values.end(), tensor.as<double>());
  return tensor;
}

std::vector<double> absolutes(const HostTensor& tensor) {
  std::vector<double> values(tensor.numel());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::fabs(toDouble(tensor.at(static_cast<int64_t>(i))));
  }
  return values;
}

Bounded evaluateBounded(const ReferenceContext& context, const Expression& expr,
                        const std::vector<const Bounded*>& operands) {
  Bounded result;
  if (expr.op->kind == OpKind::Constant || expr.op->kind == OpKind::SizeOf) {
    result.value = leafValue(context, expr);
  } else {
    std::vector<HostTensor> values;
    for (const Bounded* operand : operands) values.push_back(operand->value);
    result.value = evaluateDense(context, expr, values);
  }
  result.errors = errorsOf(context, expr, operands, result.value);
  return result;
}

std::vector<Bounded> evaluateBounded(const Fusion& fusion, const ReferenceInputs& inputs,
                                     const SizeBindings& given) {
  const SizeBindings sizes = withScalars(fusion, inputs, given);
  checkGuards(fusion.guards, sizes);
  const ReferenceContext context{fusion, inputs, sizes};
  IdVector<ValueId, Bounded> values(fusion.values().size());
  for (ValueId id : fusion.inputs()) {
    values[id] = exactly(inputValue(context, id));
  }
  for (const Expression& expr : fusion.exprs()) {
    std::vector<const Bounded*> operands;
    for (ValueId id : expr.inputs) operands.push_back(&values[id]);
    values[expr.outputs[0]] = evaluateBounded(context, expr, operands);
  }
  std::vector<Bounded> outputs;
  for (ValueId id : fusion.outputs()) outputs.push_back(values[id]);
  return outputs;
}

Comparison& Comparison::operator+=(const Comparison& other) {
  elements += other.elements;
  compared += other.compared;
  exact += other.exact;
  if (wrong == 0) first_wrong = other.first_wrong;
  wrong += other.wrong;
  return *this;
}

Comparison compare(const HostTensor& got, const Bounded& expected) {
  Comparison result;
  const HostTensor& reference = expected.value;
  if (got.dtype != reference.dtype || got.sizes != reference.sizes) {
    result.wrong = 1;
    result.first_wrong = fmt::format("got {}{}, expected {}{}", name(got.dtype), str(got.sizes),
                                     name(reference.dtype), str(reference.sizes));
    return result;
  }
  const double limit = conditionLimit(got.dtype);
  for (int64_t i = 0; i < got.numel(); ++i) {
    ++result.elements;
    const Scalar want = reference.at(i);
    const double error = expected.errors[i];
    const double size = std::fabs(toDouble(want));
    if (error > 0 && !(error <= limit * std::max(1.0, size))) continue;
    ++result.compared;
    result.exact += error <= 0;
    if (agrees(got.at(i), want, error)) continue;
    if (result.wrong++ > 0) continue;
    result.first_wrong =
        fmt::format("{}: got {}, expected {} within {:.2g}", indexText(i, got.sizes),
                    printScalar(got.at(i)), printScalar(want), std::max(error, 0.0));
  }
  return result;
}

}  // namespace heddle::random
