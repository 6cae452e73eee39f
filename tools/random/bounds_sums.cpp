// Computes the bounds of ops that combine many elements, and of ops that sort them.
#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/base/check.h"
#include "ir/graph/builder.h"
#include "tools/random/bounds.h"

namespace heddle::random {
namespace {

struct Element {
  double value;
  double error;
};

bool isNan(const Element& e) { return std::isnan(e.value) && e.error == 0; }
// Returns a bound of the error of rounding a result near `value` to f16, bf16 or f8: at least one
// unit in the last place. Returns 0 for all other types.
double coarseUnit(DType dtype, double value) {
  if (computeType(dtype) == dtype) return 0;
  const double unit = dtype == DType::F8E5M2 ? 4 : dtype == DType::F8E4M3 ? 8 : 128;
  return std::fabs(value) / unit + (sizeOf(dtype) == 1 ? 0.002 : 1e-7);
}
double largestOf(DType dtype) { return computeType(dtype) == DType::F64 ? 1e308 : 3e38; }

bool anyUnknown(const std::vector<Element>& elements) {
  return std::any_of(elements.begin(), elements.end(),
                     [](const Element& e) { return !(e.error < kUnknown); });
}

// Returns whether the sum has the same result in every order. This is true, for example, for a sum
// of a few small integers. `size` is the sum of the absolute values.
bool isExactSum(const std::vector<Element>& elements, double size, DType dtype) {
  return elements.size() <= 2 ||
         (size * computeUlp(dtype) < 1 &&
          std::all_of(elements.begin(), elements.end(),
                      [](const Element& e) { return e.value == std::nearbyint(e.value); }));
}

// Returns the bound of a sum of `elements` in any order. `value` is the sum in the reference, and
// `dtype` is its type.
double sumError(const std::vector<Element>& elements, DType dtype, double value) {
  if (std::any_of(elements.begin(), elements.end(), isNan)) return 0;
  if (anyUnknown(elements)) return kUnknown;
  double raw = 0;
  double size = 0;
  double error = 0;
  bool infinite = false;
  for (const Element& e : elements) {
    error += std::max(e.error, 0.0);
    raw += e.value;
    infinite = infinite || !std::isfinite(e.value);
    if (std::isfinite(e.value)) size += std::fabs(e.value) + std::max(e.error, 0.0);
  }
  if (size > largestOf(dtype) / 2) return kUnknown;
  if (infinite) return 0;
  if (error > 0 || !isExactSum(elements, size, dtype)) {
    error += static_cast<double>(elements.size()) * computeUlp(dtype) * size;
  }
  return boundAfterRounding(dtype, raw, error, value);
}

// Returns the bound of a product of `elements` in any order, or kUnknown if a partial product may
// overflow or lose digits by underflow.
double prodError(const std::vector<Element>& elements, DType dtype, double value) {
  if (std::any_of(elements.begin(), elements.end(), isNan)) return 0;
  if (anyUnknown(elements)) return kUnknown;
  double raw = 1;
  double high = 1;
  double low = 1;
  double up = 1;    // at least the magnitude of every partial product
  double down = 1;  // at most the magnitude of every partial product without zeros
  for (const Element& e : elements) {
    const double v = std::fabs(e.value);
    const double error = std::max(e.error, 0.0);
    raw *= e.value;
    high *= v + error;
    low *= std::max(v - error, 0.0);
    up *= std::max(v + error, 1.0);
    if (v > 0) down *= std::min(std::max(v - error, 0.0), 1.0);
  }
  const bool zero = raw == 0 && high == 0;
  if (!(up < largestOf(dtype)) || (!zero && down * largestOf(dtype) < 4)) return kUnknown;
  double error = std::max(high - std::fabs(raw), std::fabs(raw) - low);
  if (elements.size() > 2) {
    error += static_cast<double>(elements.size()) * computeUlp(dtype) * std::fabs(raw);
  }
  return boundAfterRounding(dtype, raw, error, value);
}

// Returns the bound of a maximum or minimum. A correct maximum lies between two maxima: the maximum
// of the elements minus their errors, and the maximum of the elements plus their errors.
double extremeError(std::vector<Element> elements, bool max, double value) {
  if (std::any_of(elements.begin(), elements.end(), isNan)) return 0;
  if (anyUnknown(elements)) return kUnknown;
  if (elements.empty()) return 0;
  const double sign = max ? 1 : -1;
  double high = -kUnknown;
  double low = -kUnknown;
  for (const Element& e : elements) {
    high = std::max(high, sign * e.value + std::max(e.error, 0.0));
    low = std::max(low, sign * e.value - std::max(e.error, 0.0));
  }
  if (high == low) return value == 0 ? kZeroOfAnySign : 0;
  const double error = std::max(high - sign * value, sign * value - low);
  return std::isnan(error) ? kUnknown : error;
}

double reducedError(ReduceOp op, const std::vector<Element>& elements, const HostTensor& result,
                    int64_t at) {
  const DType dtype = result.dtype;
  if (!isFloat(dtype)) return anyUnknown(elements) ? kUnknown : 0;
  const double value = toDouble(result.at(at));
  switch (op) {
    case ReduceOp::Sum:
      return sumError(elements, dtype, value);
    case ReduceOp::Prod:
      return prodError(elements, dtype, value);
    case ReduceOp::Max:
    case ReduceOp::Min:
      return extremeError(elements, op == ReduceOp::Max, value);
    case ReduceOp::Avg:
      return kUnknown;
  }
  return kUnknown;
}

// Returns the indices of the elements that a reduction combines: `place`, the index of the first
// one, plus each combination of steps along the inner axes (ir/reference/elements.h).
std::vector<int64_t> innerOffsets(const Accesses& accesses, int64_t place) {
  std::vector<int64_t> places = {place};
  for (size_t axis = 0; axis < accesses.inner_sizes.size(); ++axis) {
    std::vector<int64_t> grown;
    for (int64_t at : places) {
      for (int64_t i = 0; i < accesses.inner_sizes[axis]; ++i) {
        grown.push_back(at + i * accesses.operands[0].inner_strides[axis]);
      }
    }
    places = std::move(grown);
  }
  return places;
}

std::vector<double> positive(const std::vector<double>& errors) {
  std::vector<double> result = errors;
  for (double& e : result) e = std::max(e, 0.0);
  return result;
}

Element elementAt(const Bounded& bounded, int64_t i) {
  return {toDouble(bounded.value.at(i)), bounded.errors[i]};
}

// Returns whether every correct sort gives this order. `order` contains the elements along the
// sorted axis, in this order.
bool isSettled(const std::vector<Element>& order, bool descending) {
  const bool exact =
      std::all_of(order.begin(), order.end(), [](const Element& e) { return e.error <= 0; });
  if (exact || order.size() < 2) return true;
  if (anyUnknown(order)) return false;
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    const Element& a = order[descending ? i + 1 : i];
    const Element& b = order[descending ? i : i + 1];
    if (a.error <= 0 && b.error <= 0) continue;
    if (!(a.value + std::max(a.error, 0.0) < b.value - std::max(b.error, 0.0))) return false;
  }
  return true;
}

std::vector<Size> constants(const ReferenceContext& context, const std::vector<Size>& sizes) {
  std::vector<Size> result;
  for (const Size& size : sizes) result.emplace_back(context.evaluate(size));
  return result;
}

}  // namespace

std::vector<double> reductionErrors(const ReferenceContext& context, const Expression& expr,
                                    const Bounded& operand, const HostTensor& result) {
  const Accesses accesses = accessesOf(context, expr);
  HEDDLE_CHECK(expr.op->reduce_op.has_value(), "{} has no reduction", expr.op->name);
  std::vector<double> errors(result.numel());
  for (int64_t i = 0; i < result.numel(); ++i) {
    int64_t place = accesses.operands[0].offset;
    int64_t rest = i;
    for (size_t axis = result.sizes.size(); axis-- > 0; rest /= result.sizes[axis]) {
      place += rest % result.sizes[axis] * accesses.operands[0].strides[axis];
    }
    std::vector<Element> elements;
    for (int64_t at : innerOffsets(accesses, place)) elements.push_back(elementAt(operand, at));
    errors[i] = reducedError(*expr.op->reduce_op, elements, result, i);
  }
  return errors;
}

// Returns the bounds of matmul and linear. If the operands a and b change by ea and eb, each term
// changes by at most ea |b| + |a| eb + ea eb. In addition, each term may add one rounding. No
// activation has a slope above kSteepest.
std::vector<double> matmulErrors(const ReferenceContext& context, const Expression& expr,
                                 const std::vector<const Bounded*>& operands,
                                 const HostTensor& result) {
  constexpr double kSteepest = 1.2;
  const Bounded& a = *operands[0];
  const Bounded& b = *operands[1];
  Expression product = expr;
  product.attrs.clear();
  auto times = [&](const std::vector<double>& x, const std::vector<double>& y,
                   const std::vector<double>& bias) {
    std::vector<HostTensor> of = {doubles(a.value, x), doubles(b.value, y)};
    if (operands.size() > 2) of.push_back(doubles(operands[2]->value, bias));
    return applyTo(context, product, of);
  };
  const bool biased = operands.size() > 2;
  const std::vector<double> none(biased ? operands[2]->errors.size() : 0, 0);
  const std::vector<double> size_a = absolutes(a.value);
  const std::vector<double> size_b = absolutes(b.value);
  const std::vector<double> ea = positive(a.errors);
  const std::vector<double> eb = positive(b.errors);
  const std::vector<double> size =
      times(size_a, size_b, biased ? absolutes(operands[2]->value) : none);
  const std::vector<double> of_a = times(ea, size_b, biased ? positive(operands[2]->errors) : none);
  const std::vector<double> of_b = times(size_a, eb, none);
  const std::vector<double> of_both = times(ea, eb, none);
  const bool activated = !expr.attrs.empty();
  const auto terms = static_cast<double>(a.value.sizes.back() + (biased ? 1 : 0));
  std::vector<double> errors(result.numel());
  for (size_t i = 0; i < errors.size(); ++i) {
    const double moved = of_a[i] + of_b[i] + of_both[i];
    if (!isFloat(result.dtype)) {
      errors[i] = moved == 0 ? 0 : kUnknown;
      continue;
    }
    const double value = toDouble(result.at(static_cast<int64_t>(i)));
    const double ulps = terms + (activated ? kOpUlps : 0);
    const double own = ulps <= 1 ? 0 : ulps * computeUlp(result.dtype) * size[i];
    const double bound = kSteepest * (moved + own);
    const bool good = bound < kUnknown && size[i] < largestOf(result.dtype) / 2;
    errors[i] = !good ? kUnknown : bound == 0 ? 0 : bound + coarseUnit(result.dtype, value);
  }
  return errors;
}

// Returns the bounds of cumsum and argsort. Element n of a cumsum has the bound of a sum of n + 1
// elements. A line consists of the elements along the axis. If another order of a line is correct
// too (isSettled() returns false), all indices of an argsort in this line are unknown.
std::vector<double> scanErrors(const Expression& expr, const Bounded& operand,
                               const HostTensor& result) {
  const size_t axis = expr.axis();
  const bool sorts = expr.op->name == "argsort";
  const bool descending = expr.find("descending") != nullptr && expr.attr<bool>("descending");
  std::vector<double> errors(result.numel(), 0);
  int64_t step = 1;
  for (size_t i = axis + 1; i < result.sizes.size(); ++i) step *= result.sizes[i];
  for (int64_t first = 0; first < result.numel(); ++first) {
    if (first / step % result.sizes[axis] != 0) continue;
    std::vector<Element> line;
    for (int64_t n = 0; n < result.sizes[axis]; ++n) {
      const int64_t i = first + n * step;
      const int64_t from = sorts ? first + toInt(result.at(i)) * step : i;
      line.push_back(elementAt(operand, from));
      if (!sorts) errors[i] = reducedError(ReduceOp::Sum, line, result, i);
    }
    if (!sorts || isSettled(line, descending)) continue;
    for (int64_t n = 0; n < result.sizes[axis]; ++n) {
      errors[first + n * step] = kUnknown;
    }
  }
  return errors;
}

// Returns the bounds of scatter_add, as for a sum. The function applies scatter_add three times: to
// ones, to absolute values and to bounds. For each element, the three results are the number of
// terms, the sum of their absolute values and the sum of their bounds.
std::vector<double> scatterAddErrors(const ReferenceContext& context, const Expression& expr,
                                     const std::vector<const Bounded*>& operands,
                                     const HostTensor& result) {
  const HostTensor& into = operands[0]->value;
  const HostTensor& index = operands[1]->value;
  const HostTensor& from = operands[2]->value;
  std::vector<double> errors(result.numel(), kUnknown);
  for (double e : operands[1]->errors) {
    if (e == kUnknown) return errors;
  }
  auto add = [&](const std::vector<double>& x, const std::vector<double>& y) {
    return applyTo(context, expr, {doubles(into, x), index, doubles(from, y)});
  };
  const std::vector<double> ones(from.numel(), 1);
  const std::vector<double> count =
      add(std::vector<double>(static_cast<size_t>(into.numel()), 1), ones);
  const std::vector<double> size = add(absolutes(into), absolutes(from));
  const std::vector<double> moved =
      add(positive(operands[0]->errors), positive(operands[2]->errors));
  for (size_t i = 0; i < errors.size(); ++i) {
    if (!isFloat(result.dtype) || count[i] == 1) {
      errors[i] = moved[i] == 0 ? 0 : isFloat(result.dtype) ? moved[i] : kUnknown;
      continue;
    }
    if (!(size[i] < largestOf(result.dtype) / 2)) continue;
    const double value = toDouble(result.at(static_cast<int64_t>(i)));
    errors[i] =
        moved[i] + count[i] * computeUlp(result.dtype) * size[i] + coarseUnit(result.dtype, value);
  }
  return errors;
}

std::vector<double> applyTo(const ReferenceContext& context, const Expression& expr,
                            const std::vector<HostTensor>& operands) {
  FusionBuilder b("bounds");
  ReferenceInputs inputs;
  std::vector<ValueId> ids;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Value& old = context.fusion.value(expr.inputs[i]);
    if (old.is_scalar) {
      ids.push_back(b.constant(operands[i].at(0)));
      continue;
    }
    TensorView view;
    view.dtype = operands[i].dtype;
    view.domain = old.tensor.domain;
    for (size_t axis = 0; axis < view.rank(); ++axis) {
      view.domain[axis].extent = Size(operands[i].sizes[axis]);
    }
    ids.push_back(b.input("x" + std::to_string(i), std::move(view)));
    inputs.tensors[ids.back()] = operands[i];
  }
  std::vector<std::pair<std::string, Attr>> attrs = expr.attrs;
  for (auto& [key, attr] : attrs) {
    // Attributes of all other types contain no sizes.
    if (const auto* sizes = std::get_if<std::vector<Size>>(&attr)) {
      attr = constants(context, *sizes);
    }
  }
  b.output(b.apply(expr.op->name, ids, attrs));
  const HostTensor out = evaluateReference(std::move(b).build(), inputs, {}).at(0);
  return {out.as<double>(), out.as<double>() + out.numel()};
}

}  // namespace heddle::random
