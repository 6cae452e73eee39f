#include "ir/graph/size_scalars.h"

namespace heddle {

void forEachSize(const Fusion& fusion, const std::function<void(const Size&)>& visit) {
  for (const Value& value : fusion.values()) {
    for (const IterDomain& axis : value.tensor.domain) visit(axis.extent);
    if (value.equals) visit(*value.equals);
  }
  for (const Expression& expr : fusion.exprs()) {
    for (const auto& [name, attr] : expr.attrs) {
      const auto* sizes = std::get_if<std::vector<Size>>(&attr);
      for (size_t i = 0; sizes != nullptr && i < sizes->size(); ++i) visit((*sizes)[i]);
    }
  }
  for (const SizeGuard& guard : fusion.guards) {
    visit(guard.a);
    visit(guard.b);
  }
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

}  // namespace heddle
