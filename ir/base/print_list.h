#pragma once

#include <string>
#include <string_view>

namespace heddle {

// Calls print_item for each item and returns the texts with the separator between them: `x, y, z`.
// Empty texts at the start are omitted, together with their separators.
template <class Items, class PrintItem>
std::string join(const Items& items, PrintItem print_item, std::string_view separator = ", ") {
  std::string out;
  for (const auto& item : items) {
    if (!out.empty()) out += separator;
    out += print_item(item);
  }
  return out;
}

}  // namespace heddle
