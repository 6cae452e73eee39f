#include "ir/sizes/scalar_values.h"

#include "ir/base/check.h"
#include "ir/base/size_symbols.h"

namespace heddle {

std::string scalarValuesIn(const std::vector<Size>& sizes, const SizeBindings& values) {
  std::vector<std::string> symbols;
  for (const Size& size : sizes) {
    if (size.hasScalar()) size.collectSymbols(symbols);
  }
  std::string list;
  for (const std::string& symbol : symbols) {
    const auto value = values.find(symbol);
    if (!isScalarSymbol(symbol) || value == values.end()) continue;
    list += fmt::format("{}{} = {}", list.empty() ? " (" : ", ", symbol, value->second);
  }
  return list.empty() ? list : list + ")";
}

}  // namespace heddle
