#include "ir/base/lexer.h"
#include "ir/base/size.h"

namespace heddle {

std::string scalarSymbol(std::string_view input) {
  return "%" + (isWord(input, true) ? std::string(input) : quoted(input));
}

Size::Lookup lookupIn(const SizeBindings& bindings) {
  return [&bindings](const std::string& name) -> std::optional<int64_t> {
    auto found = bindings.find(name);
    return found == bindings.end() ? std::nullopt : std::optional(found->second);
  };
}

Size product(const std::vector<Size>& sizes) {
  Size result(1);
  for (const Size& size : sizes) result = result * size;
  return result;
}

}  // namespace heddle
