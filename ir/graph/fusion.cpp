#include "ir/graph/fusion.h"

#include <algorithm>

#include "ir/base/check.h"
#include "ir/graph/compute_type.h"
#include "ir/sizes/size_solve.h"

namespace heddle {

const Attr* Expression::find(std::string_view name) const {
  for (const auto& [key, value] : attrs) {
    if (key == name) return &value;
  }
  return nullptr;
}

void throwBadAttr(const Expression& expr, std::string_view name) {
  HEDDLE_CHECK(false, "op {} has no attribute {} of the type asked for",
               expr.op == nullptr ? "?" : expr.op->name, name);
  throw;  // unreachable
}

std::optional<ValueId> Fusion::find(std::string_view name) const {
  for (ValueId id : values_.ids()) {
    if (values_[id].name == name) return id;
  }
  return std::nullopt;
}

void Fusion::setSharding(ValueId id, std::optional<Sharding> sharding) {
  mutableValue(id).tensor.sharding = std::move(sharding);
}

IdVector<ValueId, std::vector<ExprId>> Fusion::users() const {
  IdVector<ValueId, std::vector<ExprId>> result(values_.size());
  for (ExprId user : exprs_.ids()) {
    for (ValueId input : exprs_[user].inputs) {
      std::vector<ExprId>& list = result[input];
      if (list.empty() || list.back() != user) list.push_back(user);
    }
  }
  return result;
}

IdVector<ValueId, bool> Fusion::outputFlags() const {
  IdVector<ValueId, bool> flags(values_.size(), false);
  for (ValueId id : outputs_) flags[id] = true;
  return flags;
}

ValueId Fusion::appendValue(Value value) { return values_.push_back(std::move(value)); }

ExprId Fusion::appendExpr(Expression expr) {
  for (ValueId output : expr.outputs) mutableValue(output).definition = exprs_.endId();
  return exprs_.push_back(std::move(expr));
}

void Fusion::inheritAnnotations(const Fusion& from, const IdMap& map) {
  for (const auto& [key, annotation] : from.annotations_) {
    if (!annotation.remap) {
      annotations_[key] = annotation;
      continue;
    }
    const auto mapExisting = [&, &name = key](ValueId id) {
      HEDDLE_CHECK(from.values_.has(id), "annotation '{}' names a value that does not exist", name);
      return map(id);
    };
    if (std::optional<std::any> moved = annotation.remap(annotation.fact, mapExisting)) {
      annotations_[key] = {std::move(*moved), annotation.remap};
    }
  }
}

std::vector<std::string> Fusion::staleAnnotations() const {
  std::vector<std::string> stale;
  for (const auto& [key, annotation] : annotations_) {
    if (!annotation.remap) continue;
    bool missing = false;
    annotation.remap(annotation.fact, [&](ValueId id) -> std::optional<ValueId> {
      if (values_.has(id)) return id;
      missing = true;
      return std::nullopt;
    });
    if (missing) stale.push_back(key);
  }
  return stale;
}

namespace {

// NaN equals NaN here. Only a double can be NaN, so all other alternatives are compared with ==.
bool sameNumber(double x, double y) { return x == y || (x != x && y != y); }

bool sameScalar(const std::optional<Scalar>& x, const std::optional<Scalar>& y) {
  if (!x || !y) return x.has_value() == y.has_value();
  const double* a = std::get_if<double>(&*x);
  const double* b = std::get_if<double>(&*y);
  return a != nullptr && b != nullptr ? sameNumber(*a, *b) : *x == *y;
}

bool sameAttrs(const Expression& x, const Expression& y) {
  return std::equal(x.attrs.begin(), x.attrs.end(), y.attrs.begin(), y.attrs.end(),
                    [](const auto& a, const auto& b) {
                      const double* u = std::get_if<double>(&a.second);
                      const double* v = std::get_if<double>(&b.second);
                      const bool numbers = u != nullptr && v != nullptr;
                      return a.first == b.first &&
                             (numbers ? sameNumber(*u, *v) : a.second == b.second);
                    });
}

bool sameValue(const Value& x, const Value& y) {
  return x.name == y.name && x.is_scalar == y.is_scalar && x.tensor == y.tensor &&
         x.user_sharding == y.user_sharding && x.equals == y.equals &&
         sameScalar(x.default_value, y.default_value);
}

// Returns whether two lists of ids refer to equal values. Ids may differ between two equal fusions,
// so the function compares the values. Two values of one fusion are never equal, because their
// names differ.
bool sameIds(const Fusion& a, const std::vector<ValueId>& x, const Fusion& b,
             const std::vector<ValueId>& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [&](ValueId i, ValueId k) { return sameValue(a.value(i), b.value(k)); });
}

bool sameReuses(const Fusion& a, const Fusion& b) {
  return std::equal(a.reuses().begin(), a.reuses().end(), b.reuses().begin(), b.reuses().end(),
                    [&](const auto& x, const auto& y) {
                      if (!x || !y) return x.has_value() == y.has_value();
                      return x->required == y->required &&
                             sameValue(a.value(x->input), b.value(y->input));
                    });
}

}  // namespace

bool sameGraph(const Fusion& a, const Fusion& b) {
  const auto sameExpr = [&](const Expression& x, const Expression& y) {
    return x.op == y.op && sameAttrs(x, y) && sameIds(a, x.inputs, b, y.inputs) &&
           sameIds(a, x.outputs, b, y.outputs);
  };
  return a.name == b.name && a.meshes == b.meshes && a.size_defaults == b.size_defaults &&
         a.symbolic_sizes == b.symbolic_sizes && a.values().size() == b.values().size() &&
         sameIds(a, a.inputs(), b, b.inputs()) && sameIds(a, a.outputs(), b, b.outputs()) &&
         sameReuses(a, b) && a.outputOrders() == b.outputOrders() &&
         std::equal(a.exprs().begin(), a.exprs().end(), b.exprs().begin(), b.exprs().end(),
                    sameExpr);
}

// Walks over the inputs three times. The first walk binds symbols that are extents by themselves.
// The second one collects all extents for solveSizes() (ir/sizes/size_solve.h), which solves
// extents such as `2*n`. The third one checks every extent.
SizeBindings bindSizes(const Fusion& fusion, const std::vector<std::vector<int64_t>>& inputs,
                       const SizeBindings& scalars) {
  HEDDLE_USER_CHECK(inputs.size() == fusion.inputs().size(), "fusion {} takes {} inputs, got {}",
                    fusion.name, fusion.inputs().size(), inputs.size());
  SizeBindings bindings = scalars;
  SizeSources source;
  for (const auto& [symbol, value] : scalars) source[symbol] = "input " + symbol;
  auto each = [&](auto&& visit) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Value& value = fusion.value(fusion.inputs()[i]);
      if (value.is_scalar) continue;
      HEDDLE_USER_CHECK_CODE(ShapeMismatch, inputs[i].size() == value.tensor.rank(),
                             "input %{} has {} axes, got sizes {}", value.name, value.tensor.rank(),
                             str(inputs[i]));
      for (size_t axis = 0; axis < inputs[i].size(); ++axis) {
        visit(value, axis, value.tensor.domain[axis].extent, inputs[i][axis]);
      }
    }
  };
  each([&](const Value& value, size_t axis, const Size& extent, int64_t got) {
    if (extent.kind() != Size::Kind::Symbol) return;
    const std::string here = fmt::format("axis {} of %{}", axis, value.name);
    auto [found, fresh] = bindings.try_emplace(extent.symbolName(), got);
    HEDDLE_USER_CHECK_CODE(ShapeMismatch, fresh || found->second == got,
                           "size '{}' is {} from {} but {} from {}", extent.symbolName(),
                           found->second, source[extent.symbolName()], got, here);
    if (fresh) source[extent.symbolName()] = here;
  });
  std::vector<std::pair<Size, int64_t>> extents;
  each([&](const Value&, size_t, const Size& extent, int64_t got) {
    extents.emplace_back(extent, got);
  });
  solveSizes(extents, bindings);
  for (const auto& [symbol, value] : fusion.size_defaults) bindings.try_emplace(symbol, value);
  each([&](const Value& value, size_t axis, const Size& extent, int64_t got) {
    const int64_t expected = extent.evaluate(lookupIn(bindings));
    HEDDLE_USER_CHECK(expected == got, "axis {} of input %{} must be {} ({}), got {}", axis,
                      value.name, expected, extent.str(), got);
  });
  checkGuards(fusion.guards, bindings, source);
  return bindings;
}

OperandKind kindOf(const Value& value) {
  if (value.is_scalar) return OperandKind::HostScalar;
  return value.tensor.rank() == 0 ? OperandKind::ZeroDim : OperandKind::Tensor;
}

DType computeTypeOf(const Fusion& fusion, const Expression& expr) {
  std::vector<OperandType> operands;
  for (size_t i = expr.op->bool_operands; i < expr.inputs.size(); ++i) {
    const Value& value = fusion.value(expr.inputs[i]);
    operands.push_back({value.tensor.dtype, kindOf(value)});
  }
  return operandType(*expr.op, fusion.tensor(expr.outputs[0]).dtype, promoteOperands(operands));
}

bool isPowByNumber(const Fusion& fusion, const Expression& expr) {
  return expr.op->name == "pow" && !fusion.value(expr.outputs[0]).is_scalar &&
         !fusion.value(expr.inputs[0]).is_scalar && fusion.value(expr.inputs[1]).is_scalar;
}

}  // namespace heddle
