// FusionBuilder: sizes that contain the values of scalars.
#include <algorithm>
#include <map>

#include "ir/base/check.h"
#include "ir/graph/builder.h"
#include "ir/graph/size_scalars.h"
#include "ir/sizes/size_quotient.h"
#include "ir/types/exact_scalar.h"

namespace heddle {
namespace {

// Returns the size that an op computes from sizes, or nullopt if Size has no such operation.
std::optional<Size> applied(std::string_view op, const std::vector<Size>& x) {
  if (op == "add") return x[0] + x[1];
  if (op == "sub") return x[0] - x[1];
  if (op == "mul") return x[0] * x[1];
  if (op == "div_floor") return Size::floorDiv(x[0], x[1]);
  if (op == "remainder") return Size::mod(x[0], x[1]);
  if (op == "minimum") return Size::min(x[0], x[1]);
  if (op == "maximum") return Size::max(x[0], x[1]);
  if (op == "clamp") return Size::min(Size::max(x[0], x[1]), x[2]);
  if (op == "neg") return Size(0) - x[0];
  if (op == "abs") return Size::max(x[0], Size(0) - x[0]);
  if (op == "relu") return Size::max(x[0], Size(0));
  if (op == "cast" || op == "set") return x[0];
  return std::nullopt;
}

}  // namespace

// Returns the scalar `id` as a size. `sizes` contains the operands of its expression as sizes.
Size FusionBuilder::scalarStep(ValueId id, const std::map<ValueId, Size>& sizes) const {
  const Value& value = fusion_.value(id);
  if (value.definition == kNoExpr) return Size::symbol(scalarSymbol(value.name));
  const Expression& expr = fusion_.expr(value.definition);
  if (expr.op->kind == OpKind::Constant) return {std::get<int64_t>(*expr.find("value"))};
  if (expr.op->kind == OpKind::SizeOf)
    return fusion_.tensor(expr.inputs[0]).domain[expr.axis()].extent;
  std::vector<Size> operands;
  for (ValueId input : expr.inputs) operands.push_back(sizes.at(input));
  const bool is_exact = value.tensor.dtype == DType::I64 || expr.op->kind == OpKind::Set;
  const std::optional<Size> result = applied(expr.op->name, operands);
  HEDDLE_USER_CHECK(is_exact && result,
                    "a size cannot be {}, the result of {}: a size may be computed from integer "
                    "inputs and sizes in i64, by add, sub, mul, div_floor, remainder, minimum, "
                    "maximum, clamp, neg, abs, relu and casts to i64",
                    typeOf(id), expr.op->name);
  return *result;
}

// Uses a list instead of recursion, because chains of scalars may be long.
Size FusionBuilder::sizeFrom(ValueId scalar) const {
  std::map<ValueId, Size> sizes;
  std::vector<ValueId> open = {scalar};
  while (!open.empty()) {
    const ValueId id = open.back();
    HEDDLE_USER_CHECK(fusion_.values().has(id), "a size: there is no value with id {}", id);
    HEDDLE_USER_CHECK(mayDecideSizes(fusion_.tensor(id)),
                      "a size cannot be {}: expected an integer scalar or an integer tensor "
                      "without axes",
                      typeOf(id));
    const ExprId definition = fusion_.value(id).definition;
    const bool reads = definition != kNoExpr && fusion_.expr(definition).op->kind != OpKind::SizeOf;
    const size_t before = open.size();
    for (size_t i = 0; reads && i < fusion_.expr(definition).inputs.size(); ++i) {
      const ValueId operand = fusion_.expr(definition).inputs[i];
      if (!sizes.contains(operand)) open.push_back(operand);
    }
    if (open.size() != before) continue;
    open.pop_back();
    sizes.try_emplace(id, scalarStep(id, sizes));
  }
  return sizes.at(scalar);
}

void FusionBuilder::requireEqual(ValueId scalar, Size size) {
  const Size value = sizeFrom(scalar);
  Value& input = fusion_.mutableValue(scalar);
  HEDDLE_USER_CHECK(input.definition == kNoExpr && input.is_scalar && !input.equals,
                    "{}: only a scalar input can be required to equal a size, and only once",
                    typeOf(scalar));
  fusion_.guards.push_back({value, size, fmt::format("the scalar input %{}", input.name)});
  input.equals = std::move(size);
}

void FusionBuilder::guardAtMost(const Size& a, const Size& b, std::string source) {
  if (a.hasScalar() || b.hasScalar()) {
    fusion_.guards.push_back({a, b, std::move(source), true});
  }
}

void FusionBuilder::guardSizes(std::string_view op_name, const std::vector<Size>& sizes,
                               DType dtype) {
  Size bytes(heddle::sizeOf(dtype));
  for (size_t i = 0; i < sizes.size(); ++i) {
    guardAtMost(Size(0), sizes[i], fmt::format("size {} of {}", i, where(op_name)));
    bytes = bytes * sizes[i];
  }
  guardAtMost(Size(0), bytes, fmt::format("bytes of the result of {}", where(op_name)));
}

// Resolves the size -1 of a reshape. At most one size is -1, and its value follows from the others.
// If no size is the constant -1, each size that is the value of a scalar (`%n`) may be -1 in a run.
// Such a size becomes Size::given(size, extent), which is `extent` if the size is -1. The value of
// an expression such as `%n + 1` must not be negative. Exception: if a size contains a given(), or
// if the sizes multiply to the number of elements, no size may be -1, and the sizes stay as they
// are. A shape that was resolved before is therefore not changed.
void FusionBuilder::resolveOpenSize(std::vector<Size>& sizes, const Size& elements) {
  const bool has_scalar =
      std::any_of(sizes.begin(), sizes.end(), [](const Size& size) { return size.hasScalar(); });
  const auto open = std::find(sizes.begin(), sizes.end(), Size(-1));
  const auto others_of = [&](size_t without) {
    Size others(1);
    for (size_t i = 0; i < sizes.size(); ++i) others = i == without ? others : others * sizes[i];
    return others;
  };
  if (open != sizes.end()) {
    HEDDLE_USER_CHECK(std::count(sizes.begin(), sizes.end(), Size(-1)) == 1,
                      "{}: more than one size is -1", where("reshape"));
    for (size_t i = 0; i < sizes.size(); ++i) {
      guardAtMost(Size(0), sizes[i],
                  fmt::format("size {} of {}, which has another size -1", i, where("reshape")));
    }
    *open = Size(1);
    checkSizes("reshape", sizes);
    const Size others = product(sizes);
    HEDDLE_USER_CHECK(!others.isConstant(0), "{}: -1 beside a size of 0 could be any size",
                      where("reshape"));
    const Size value = quotient(elements, others);
    *open = has_scalar || value.hasScalar() ? Size::given(Size(-1), value) : value;
    return;
  }
  const bool has_given =
      std::any_of(sizes.begin(), sizes.end(), [](const Size& size) { return size.hasGiven(); });
  if (!has_scalar || has_given) return;
  const bool is_final = quotient(elements, product(sizes)).isConstant(1);
  Size minus_ones(0);
  std::vector<Size> resolved = sizes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool may_be_open = !is_final && isScalarValue(sizes[i]);
    guardAtMost(Size(may_be_open ? -1 : 0), sizes[i],
                fmt::format("size {} of {}", i, where("reshape")));
    if (!may_be_open) continue;
    minus_ones = minus_ones + Size::max(Size(0) - sizes[i], Size(0));
    resolved[i] = Size::given(sizes[i], quotient(elements, others_of(i)));
  }
  guardAtMost(minus_ones, Size(1), where("reshape"));
  sizes = std::move(resolved);
}

ValueId FusionBuilder::scalarInput(std::string input_name, DType dtype,
                                   std::optional<Scalar> default_value) {
  name(std::move(input_name));
  Value value;
  value.is_scalar = true;
  value.tensor.dtype = dtype;
  value.name = takeName(true);
  if (default_value) {
    const std::string why = whyNotScalar(dtype, *default_value);
    HEDDLE_USER_CHECK_CODE(Type, why.empty(), "the default of the scalar %{} of type {} {}",
                           value.name, heddle::name(dtype), why);
    value.default_value = roundTo(dtype, *default_value);
  }
  return addInput(std::move(value));
}

}  // namespace heddle
