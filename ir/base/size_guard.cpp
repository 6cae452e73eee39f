#include "ir/base/size_guard.h"

#include <optional>

#include "ir/base/error.h"

namespace heddle {
namespace {

// Returns a text such as " (t = 12 is axis 0 of %x, %n = 5 is the scalar input %n)".
std::string valuesIn(const SizeGuard& guard, const SizeBindings& sizes,
                     const SizeSources& sources) {
  if (!guard.a.hasScalar() && !guard.b.hasScalar()) return "";  // `source` names the tensors
  std::vector<std::string> symbols;
  guard.a.collectSymbols(symbols);
  guard.b.collectSymbols(symbols);
  std::string list;
  for (const std::string& symbol : symbols) {
    const auto value = sizes.find(symbol);
    const auto source = sources.find(symbol);
    if (value == sizes.end() || source == sources.end()) continue;
    list += fmt::format("{}{} = {} is {}", list.empty() ? " (" : ", ", symbol, value->second,
                        source->second);
  }
  return list.empty() ? list : list + ")";
}

std::string whyNot(const SizeGuard& guard, int64_t a, int64_t b) {
  if (!guard.at_most) {
    if (guard.b.isConstant()) return fmt::format("{} is {}, expected {}", guard.a.str(), a, b);
    return fmt::format("{} = {} and {} = {} must be equal", guard.a.str(), a, guard.b.str(), b);
  }
  if (guard.a.isConstant()) {
    return fmt::format("{} is {}, expected {} or more", guard.b.str(), b, a);
  }
  if (guard.b.isConstant()) {
    return fmt::format("{} is {}, expected at most {}", guard.a.str(), a, b);
  }
  return fmt::format("{} = {} must be at most {} = {}", guard.a.str(), a, guard.b.str(), b);
}

// Returns what is wrong, or nullopt if the guard holds.
std::optional<std::string> violation(const SizeGuard& guard, const SizeBindings& sizes) {
  try {
    const int64_t a = guard.a.evaluate(lookupIn(sizes));
    const int64_t b = guard.b.evaluate(lookupIn(sizes));
    if (guard.at_most ? a <= b : a == b) return std::nullopt;
    return whyNot(guard, a, b);
  } catch (const UserError& error) {
    return error.what();
  }
}

}  // namespace

void checkGuards(const std::vector<SizeGuard>& guards, const SizeBindings& sizes,
                 const SizeSources& sources) {
  for (const SizeGuard& guard : guards) {
    if (const std::optional<std::string> wrong = violation(guard, sizes)) {
      userError("{}: {}{}", guard.source, *wrong, valuesIn(guard, sizes, sources));
    }
  }
}

}  // namespace heddle
