#include "codegen/kernel_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

namespace heddle::codegen {

std::optional<int64_t> KernelChoice::find(std::string_view name) const {
  for (const auto& [known, value] : parameters) {
    if (known == name) return value;
  }
  return std::nullopt;
}

void KernelChoice::set(std::string_view name, int64_t value) {
  for (auto& [known, old] : parameters) {
    if (known != name) continue;
    old = value;
    return;
  }
  parameters.emplace_back(name, value);
}

bool KernelChoice::includes(const KernelChoice& asked) const {
  if (!asked.family.empty() && asked.family != family) return false;
  return std::all_of(asked.parameters.begin(), asked.parameters.end(),
                     [this](const auto& each) { return find(each.first) == each.second; });
}

std::string print(const KernelChoice& choice) {
  std::string text = choice.family;
  for (const auto& [name, value] : choice.parameters) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

std::optional<KernelChoice> parseKernelChoice(std::string_view text) {
  constexpr std::string_view kSeparators = " ,";
  KernelChoice choice;
  while (true) {
    const size_t begin = text.find_first_not_of(kSeparators);
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find_first_of(kSeparators));
    text.remove_prefix(word.size());
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos) {
      if (!choice.family.empty() || !choice.parameters.empty()) return std::nullopt;
      choice.family = word;
      continue;
    }
    int64_t value = 0;
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data() + equals + 1, end, value);
    if (equals == 0 || error != std::errc() || stop != end) return std::nullopt;
    if (choice.find(word.substr(0, equals))) return std::nullopt;
    choice.parameters.emplace_back(word.substr(0, equals), value);
  }
  if (choice.family.empty() && choice.parameters.empty()) return std::nullopt;
  return choice;
}

int64_t powerOf(const KernelChoice* choice, std::string_view name, int64_t most,
                int64_t otherwise) {
  const std::optional<int64_t> value = choice == nullptr ? std::nullopt : choice->find(name);
  if (!value) return otherwise;
  const int64_t limited = std::clamp<int64_t>(*value, 1, std::max<int64_t>(most, 1));
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(limited)));
}

int64_t numberOf(const KernelChoice* choice, std::string_view name, int64_t most,
                 int64_t otherwise) {
  const std::optional<int64_t> value = choice == nullptr ? std::nullopt : choice->find(name);
  return value ? std::clamp<int64_t>(*value, 1, std::max<int64_t>(most, 1)) : otherwise;
}

}  // namespace heddle::codegen
