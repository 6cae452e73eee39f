#include "ir/graph/size_scalars.h"

#include <fmt/format.h>

#include "ir/base/check.h"
#include "ir/graph/verify.h"

namespace heddle {

void forEachSize(const Fusion& fusion, const std::function<void(const Size&)>& visit) {
  for (const Value& value : fusion.values()) {
    for (const IterDomain& axis : value.tensor.domain) visit(axis.extent);
    if (value.equals) visit(*value.equals);
  }
  for (const Expression& expr : fusion.exprs()) {
    for (const auto& [name, attr] : expr.attrs) {
      // Only attributes of the type std::vector<Size> contain sizes.
      const auto* sizes = std::get_if<std::vector<Size>>(&attr);
      for (size_t i = 0; sizes != nullptr && i < sizes->size(); ++i) visit((*sizes)[i]);
    }
  }
  for (const SizeGuard& guard : fusion.guards) {
    visit(guard.a);
    visit(guard.b);
  }
}

bool isScalarValue(const Size& size) {
  return size.kind() == Size::Kind::Symbol && size.hasScalar();
}

void addScalarSymbols(const Size& size, std::set<std::string>& symbols) {
  if (!size.hasScalar()) return;
  std::vector<std::string> found;
  size.collectSymbols(found);
  for (const std::string& symbol : found) {
    if (isScalarSymbol(symbol)) symbols.insert(symbol);
  }
}

std::set<std::string> scalarSymbols(const Fusion& fusion) {
  std::set<std::string> symbols;
  forEachSize(fusion, [&](const Size& size) { addScalarSymbols(size, symbols); });
  return symbols;
}

void substituteScalars(Fusion& fusion,
                       const std::function<std::optional<Size>(const std::string&)>& replace) {
  const auto change = [&](Size& size) {
    if (size.hasScalar()) size = size.substitute(replace);
  };
  for (ValueId id : fusion.values().ids()) {
    for (IterDomain& axis : fusion.mutableValue(id).tensor.domain) change(axis.extent);
  }
  for (ExprId id : fusion.exprs().ids()) {
    for (auto& [name, attr] : fusion.mutableExpr(id).attrs) {
      // Only attributes of the type std::vector<Size> contain sizes.
      auto* sizes = std::get_if<std::vector<Size>>(&attr);
      for (size_t i = 0; sizes != nullptr && i < sizes->size(); ++i) change((*sizes)[i]);
    }
  }
  for (SizeGuard& guard : fusion.guards) {
    change(guard.a);
    change(guard.b);
  }
}

bool mayDecideSizes(const TensorView& tensor) {
  return tensor.rank() == 0 && tensor.dtype != DType::Bool && !isFloat(tensor.dtype);
}

SizeBindings defaultSizes(const Fusion& fusion) {
  SizeBindings sizes(fusion.size_defaults.begin(), fusion.size_defaults.end());
  const std::set<std::string> symbols = scalarSymbols(fusion);
  for (ValueId id : fusion.inputs()) {
    const Value& value = fusion.value(id);
    const std::string symbol = scalarSymbol(value.name);
    if (!value.default_value || !symbols.contains(symbol)) continue;
    sizes.emplace(symbol, std::get<int64_t>(*value.default_value));
  }
  return sizes;
}

// Declared in ir/graph/verify.h.
void checkSizeSymbols(const Fusion& fusion) {
  std::set<std::string> scalars;  // the symbols of inputs that sizes may contain
  for (ValueId id : fusion.inputs()) {
    const Value& value = fusion.value(id);
    if (mayDecideSizes(value.tensor)) scalars.insert(scalarSymbol(value.name));
  }
  const auto check = [&](const std::string& where, const Size& size) {
    if (size.isConstant()) return;
    std::vector<std::string> symbols;
    size.collectSymbols(symbols);
    for (const std::string& symbol : symbols) {
      HEDDLE_USER_CHECK(symbol != "rank" && symbol != "ranks" && symbol[0] != '@',
                        "{}: '{}' has a value in host programs only; a size of a fusion may "
                        "contain only numbers and symbols with other names",
                        where, symbol);
      HEDDLE_USER_CHECK(!isScalarSymbol(symbol) || scalars.contains(symbol),
                        "{}: {} is no integer input without axes, and no value computed from such "
                        "inputs and sizes",
                        where, symbol);
    }
  };
  for (const Value& value : fusion.values()) {
    for (size_t i = 0; i < value.tensor.rank(); ++i) {
      const Size& extent = value.tensor.domain[i].extent;
      if (extent.isConstant()) continue;
      const std::string line = value.line > 0 ? fmt::format(" at line {}", value.line) : "";
      check(fmt::format("axis {} of %{}{}", i, value.name, line), extent);
    }
  }
  for (const Expression& expr : fusion.exprs()) {
    for (const auto& [name, attr] : expr.attrs) {
      // Only attributes of the type std::vector<Size> contain sizes.
      const auto* sizes = std::get_if<std::vector<Size>>(&attr);
      if (sizes == nullptr) continue;
      for (const Size& size : *sizes) {
        check(fmt::format("{} of %{}", name, fusion.value(expr.outputs[0]).name), size);
      }
    }
  }
}

}  // namespace heddle
