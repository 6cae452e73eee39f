#include "ir/composite/terms.h"

#include <algorithm>

#include "ir/base/check.h"

namespace heddle::composite {

Term constant(FusionBuilder& b, Scalar value) { return {&b, b.constant(value)}; }

Term call(std::string_view op_name, std::vector<Term> operands) {
  std::vector<ValueId> ids;
  for (const Term& operand : operands) ids.push_back(operand.id);
  FusionBuilder& b = *operands.front().b;
  return {&b, b.pointwise(op_name, std::move(ids))};
}

Term operator+(Term a, Term c) { return call("add", {a, c}); }
Term operator-(Term a, Term c) { return call("sub", {a, c}); }
Term operator*(Term a, Term c) { return call("mul", {a, c}); }
Term operator/(Term a, Term c) { return call("div", {a, c}); }
Term operator+(Term a, double c) { return a + constant(*a.b, c); }
Term operator-(Term a, double c) { return a - constant(*a.b, c); }
Term operator*(Term a, double c) { return a * constant(*a.b, c); }
Term operator-(double a, Term c) { return constant(*c.b, a) - c; }

Term where(Term condition, Term a, Term c) { return call("where", {condition, a, c}); }

Term cast(Term a, DType dtype) {
  if (a.dtype() == dtype) return a;
  return {a.b, a.b->cast(a.id, dtype)};
}

Term sum(Term a, const Axes& axes, bool keepdim) {
  return {a.b, a.b->reduce("sum", a.id, axes, keepdim)};
}

Term max(Term a, const Axes& axes, bool keepdim) {
  return {a.b, a.b->reduce("max", a.id, axes, keepdim)};
}

Term broadcast(Term a, const Axes& output_axes) {
  if (output_axes.empty()) return a;
  return {a.b, a.b->broadcast(a.id, output_axes)};
}

Term count(Term a, const Axes& axes) {
  if (axes.empty()) return constant(*a.b, int64_t{1});
  Term n{a.b, a.b->sizeOf(a.id, axes[0])};
  for (size_t i = 1; i < axes.size(); ++i) n = n * Term{a.b, a.b->sizeOf(a.id, axes[i])};
  return n;
}

Term mean(Term a, const Axes& axes, bool keepdim) {
  const Term n = count(a, axes);
  return sum(a, axes, keepdim) / n;
}

Term sizeScalar(FusionBuilder& b, const Size& size) {
  if (size.isConstant()) return constant(b, size.constant());
  return {&b, b.sizeOf(b.iota({size}, 0), 0)};
}

namespace {

Term symbolScalar(FusionBuilder& b, const std::string& symbol) {
  for (ValueId id : b.fusion().inputs()) {
    const Value& value = b.fusion().value(id);
    if (value.tensor.rank() == 0 && scalarSymbol(value.name) == symbol) {
      return cast({&b, id}, DType::I64);
    }
  }
  return sizeScalar(b, Size::symbol(symbol));
}

}  // namespace

Term scalarOf(FusionBuilder& b, const Size& size) {
  if (size.isConstant()) return constant(b, size.constant());
  if (size.kind() == Size::Kind::Symbol) return symbolScalar(b, size.symbolName());
  const Term left = scalarOf(b, size.lhs());
  const Term right = scalarOf(b, size.rhs());
  switch (size.kind()) {
    case Size::Kind::Add:
      return left + right;
    case Size::Kind::Sub:
      return left - right;
    case Size::Kind::Mul:
      return left * right;
    case Size::Kind::FloorDiv:
      return call("div_floor", {left, right});
    case Size::Kind::CeilDiv:
      return call("neg", call("div_floor", {call("neg", left), right}));
    case Size::Kind::Mod:
      return call("remainder", {left, right});
    case Size::Kind::Min:
      return call("minimum", {left, right});
    case Size::Kind::Max:
      return call("maximum", {left, right});
    case Size::Kind::Given:
      return where(call("eq", {left, constant(b, int64_t{-1})}), right, left);
    case Size::Kind::Constant:
    case Size::Kind::Symbol:
      break;  // handled above
  }
  HEDDLE_CHECK(false, "kind {} of a size", static_cast<int>(size.kind()));
}

Term positions(FusionBuilder& b, const std::vector<Size>& sizes, int64_t axis) {
  const Term line{&b, b.iota({sizes[axis]}, 0)};
  return broadcast(line, otherAxes(sizes.size(), axis));
}

Axes otherAxes(size_t rank, int64_t axis) {
  Axes others;
  for (int64_t i = 0; i < static_cast<int64_t>(rank); ++i) {
    if (i != axis) others.push_back(i);
  }
  return others;
}

bool isHalf(DType dtype) { return isFloat(dtype) && sizeOf(dtype) == 2; }

DType wideType(DType dtype) { return isHalf(dtype) ? DType::F32 : dtype; }

Term widen(Term a) { return cast(a, wideType(a.dtype())); }

ValueId Result::operator()(Term term) {
  if (!name_.empty()) b_.rename(term.id, std::exchange(name_, ""));
  return term.id;
}

Term floatOperand(FusionBuilder& b, std::string_view op_name, ValueId id) {
  const DType dtype = b.tensorOf(op_name, id).dtype;
  HEDDLE_USER_CHECK(isFloat(dtype), "{}: {} is not of a float type", b.where(op_name),
                    b.typeOf(id));
  refuseFloat8(b, op_name, id);
  return {&b, id};
}

void refuseFloat8(FusionBuilder& b, std::string_view op_name, ValueId id) {
  HEDDLE_USER_CHECK(!isFloat8(b.tensorOf(op_name, id).dtype),
                    "{}: {} is of an f8 type, which only casts, data movement and matrix products "
                    "accept: cast it",
                    b.where(op_name), b.typeOf(id));
}

Axes axesOf(FusionBuilder& b, std::string_view op_name, Term x, Axes axes) {
  if (axes.empty()) return rowMajor(x.rank());
  return b.normalizeAxes(op_name, std::move(axes), x.rank());
}

int64_t axisOf(FusionBuilder& b, std::string_view op_name, Term x, int64_t axis) {
  return b.normalizeAxis(op_name, axis, x.rank());
}

Axes lineOf(FusionBuilder& b, std::string_view op_name, Term x, int64_t axis) {
  return b.normalizeAxes(op_name, {axis}, x.rank());
}

void sameShape(FusionBuilder& b, std::string_view op_name, Term x, Term y) {
  HEDDLE_USER_CHECK(x.rank() == y.rank(), "{}: {} and {} differ in rank", b.where(op_name),
                    b.typeOf(x.id), b.typeOf(y.id));
  for (size_t i = 0; i < x.rank(); ++i) b.agree(op_name, x.id, i, y.id, i);
}

void broadcastable(FusionBuilder& b, std::string_view op_name, Term x, Term y) {
  for (size_t i = 1; i <= std::min(x.rank(), y.rank()); ++i) {
    const Size a = x.extent(x.rank() - i);
    const Size c = y.extent(y.rank() - i);
    const bool known = a.isConstant() && c.isConstant();
    if (!known || a.isConstant(1) || c.isConstant(1)) continue;
    b.agree(op_name, x.id, x.rank() - i, y.id, y.rank() - i);
  }
}

void guardSize(FusionBuilder& b, const Size& holds, int64_t value, std::string says) {
  if (!holds.isConstant())
    b.mutableFusion().guards.push_back({holds, Size(value), std::move(says)});
}

void guardEven(FusionBuilder& b, std::string_view op_name, const Size& extent, int64_t axis,
               ValueId operand) {
  HEDDLE_USER_CHECK(!extent.isConstant() || extent.constant() % 2 == 0,
                    "{}: axis {} of {} has an odd extent", b.where(op_name), axis,
                    b.typeOf(operand));
  guardSize(b, Size::mod(extent, Size(2)), 0,
            fmt::format("{}: axis {} of {} must have an even extent", b.where(op_name), axis,
                        b.typeOf(operand)));
}

void sameType(FusionBuilder& b, std::string_view op_name, Term x, Term y) {
  HEDDLE_USER_CHECK(x.dtype() == y.dtype(), "{}: {} and {} differ in dtype", b.where(op_name),
                    b.typeOf(x.id), b.typeOf(y.id));
}

Term parameterOf(FusionBuilder& b, std::string_view op_name, Term x, ValueId parameter,
                 int64_t axis) {
  const TensorView tensor = b.tensorOf(op_name, parameter);
  const bool fits = tensor.dtype == x.dtype() || (isHalf(x.dtype()) && tensor.dtype == DType::F32);
  HEDDLE_USER_CHECK(fits, "{}: {} does not have the dtype of {}", b.where(op_name),
                    b.typeOf(parameter), b.typeOf(x.id));
  const size_t first = axis;
  HEDDLE_USER_CHECK(first + tensor.rank() <= x.rank() && tensor.rank() > 0,
                    "{}: {} does not have the axes of {} to which it applies", b.where(op_name),
                    b.typeOf(parameter), b.typeOf(x.id));
  for (size_t i = 0; i < tensor.rank(); ++i) b.agree(op_name, x.id, first + i, parameter, i);
  return {&b, parameter};
}

Term indexOperand(FusionBuilder& b, std::string_view op_name, ValueId id) {
  const DType dtype = b.tensorOf(op_name, id).dtype;
  HEDDLE_USER_CHECK(!isFloat(dtype) && dtype != DType::Bool,
                    "{}: the index {} must be of an integer type", b.where(op_name), b.typeOf(id));
  return cast({&b, id}, DType::I64);
}

std::vector<Size> without(const std::vector<Size>& sizes, int64_t axis) {
  std::vector<Size> rest = sizes;
  rest.erase(rest.begin() + axis);
  return rest;
}

}  // namespace heddle::composite
