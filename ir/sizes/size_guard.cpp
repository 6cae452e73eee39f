#include "ir/sizes/size_guard.h"

#include <fmt/ranges.h>

#include <optional>

#include "ir/base/check.h"
#include "ir/base/size_symbols.h"
#include "ir/sizes/scalar_values.h"
#include "ir/sizes/size_quotient.h"

namespace heddle {
namespace {

using Kind = Size::Kind;

// Returns a text such as " (t = 12 is axis 0 of %x, %n = 5 is the scalar input %n)". If the guard
// contains no scalar, the text omits the symbols whose tensor guard.source already names.
std::string valuesIn(const SizeGuard& guard, const SizeBindings& sizes,
                     const SizeSources& sources) {
  std::vector<std::string> symbols;
  guard.a.collectSymbols(symbols);
  guard.b.collectSymbols(symbols);
  const bool has_scalar = guard.a.hasScalar() || guard.b.hasScalar();
  std::string list;
  for (const std::string& symbol : symbols) {
    const auto value = sizes.find(symbol);
    const auto source = sources.find(symbol);
    if (value == sizes.end() || source == sources.end()) continue;
    const size_t at = source->second.find('%');
    const std::string tensor = at == std::string::npos ? "" : source->second.substr(at) + ":";
    const bool is_named = !tensor.empty() && guard.source.find(tensor) != std::string::npos;
    if (!has_scalar && is_named) continue;
    list += fmt::format("{}{} = {} is {}", list.empty() ? " (" : ", ", symbol, value->second,
                        source->second);
  }
  return list.empty() ? list : list + ")";
}

std::vector<Size> factorsOf(const Size& size) {
  std::vector<Size> factors = {size};
  for (size_t i = 0; i < factors.size(); ++i) {
    while (factors[i].kind() == Kind::Mul) {
      const Size whole = factors[i];
      factors[i] = whole.lhs();
      factors.push_back(whole.rhs());
    }
  }
  return factors;
}

// Returns a size with its value: "t*h = 24", or "24" for a number.
std::string withValue(const Size& size, int64_t value) {
  return size.isConstant() ? size.str() : fmt::format("{} = {}", size.str(), value);
}

// Explains why a guard a == b fails, if one factor of `b` is a quotient: `a` divided by the product
// of the other factors of `b`. Returns nullopt if `b` has no such factor. FusionBuilder computes
// such a quotient for the size -1 of a reshape. `is_open` is true if this size is a Size::given(),
// so that the message may mention the -1.
std::optional<std::string> whyNotDivided(const Size& a, const Size& b, bool is_open,
                                         const SizeBindings& sizes) {
  if (b.str().find("floordiv(") == std::string::npos) return std::nullopt;
  const std::vector<Size> factors = factorsOf(b);
  for (size_t i = 0; i < factors.size(); ++i) {
    if (factors[i].kind() != Kind::FloorDiv) continue;
    Size others(1);
    for (size_t k = 0; k < factors.size(); ++k) others = k == i ? others : others * factors[k];
    if (!(quotient(a, others) == factors[i])) continue;
    const Size& all = factors[i].lhs();
    const Size& rest = factors[i].rhs();
    const int64_t divisor = rest.evaluate(lookupIn(sizes));
    const char* open = is_open ? ", so the size -1 has no value" : "";
    if (divisor == 0) {
      return is_open
                 ? fmt::format("{} is 0, so the size -1 beside it could be any size", rest.str())
                 : fmt::format("{} is divided by {} = 0", all.str(), rest.str());
    }
    return fmt::format("{} is not a multiple of {}{}",
                       withValue(all, all.evaluate(lookupIn(sizes))), withValue(rest, divisor),
                       open);
  }
  return std::nullopt;
}

// Returns n and m for the size max(0 - n, 0) + max(0 - m, 0), with which FusionBuilder counts how
// many sizes are -1. Returns an empty list for every other size.
std::vector<std::string> countedSizes(const Size& size) {
  if (size.kind() == Kind::Add) {
    std::vector<std::string> left = countedSizes(size.lhs());
    const std::vector<std::string> right = countedSizes(size.rhs());
    if (left.empty() || right.empty()) return {};
    left.insert(left.end(), right.begin(), right.end());
    return left;
  }
  if (size.kind() != Kind::Max || !size.rhs().isConstant(0)) return {};
  const Size& negative = size.lhs();
  if (negative.kind() != Kind::Sub || !negative.lhs().isConstant(0)) return {};
  return {negative.rhs().str()};
}

std::string whyTooLarge(const Size& first, const Size& second, int64_t a, int64_t b) {
  const bool may_count = first.str().starts_with("max(0 - ");
  const std::vector<std::string> counted =
      may_count ? countedSizes(first) : std::vector<std::string>{};
  if (!counted.empty()) {
    return fmt::format("{} of the sizes {} are -1, expected at most {}", a,
                       fmt::join(counted, ", "), b);
  }
  if (first.isConstant()) {
    return fmt::format("{} is {}, expected {} or more", second.str(), b, a);
  }
  if (second.isConstant()) {
    return fmt::format("{} is {}, expected at most {}", first.str(), a, b);
  }
  return fmt::format("{} = {} must be at most {} = {}", first.str(), a, second.str(), b);
}

bool holds(const SizeGuard& guard, int64_t a, int64_t b) { return guard.at_most ? a <= b : a == b; }

bool holds(const SizeGuard& guard, const SizeBindings& sizes) {
  try {
    return holds(guard, guard.a.evaluate(lookupIn(sizes)), guard.b.evaluate(lookupIn(sizes)));
  } catch (const UserError&) {
    return false;  // violation() reports the error for the sizes that the user wrote
  }
}

// Returns what is wrong with the values of a guard that does not hold.
std::string violation(const SizeGuard& guard, const SizeBindings& sizes,
                      const SizeSources& sources) {
  try {
    const Size first = decidedSize(guard.a, sizes), second = decidedSize(guard.b, sizes);
    if (!guard.at_most) {
      const bool is_open = guard.b.hasGiven();
      if (const auto why = whyNotDivided(first, second, is_open, sizes)) return *why;
    }
    const int64_t a = first.evaluate(lookupIn(sizes)), b = second.evaluate(lookupIn(sizes));
    HEDDLE_USER_CHECK(!holds(guard, a, b), "{} or {} overflows 64 bits", guard.a.str(),
                      guard.b.str());
    if (guard.at_most) return whyTooLarge(first, second, a, b);
    if (second.isConstant()) return fmt::format("{} is {}, expected {}", first.str(), a, b);
    return fmt::format("{} and {} must be equal", withValue(first, a), withValue(second, b));
  } catch (const UserError& error) {
    // If there are sources, valuesIn() adds the values.
    return error.what() + (sources.empty() ? scalarValuesIn({guard.a, guard.b}, sizes) : "");
  }
}

}  // namespace

void checkGuards(const std::vector<SizeGuard>& guards, const SizeBindings& sizes,
                 const SizeSources& sources) {
  for (const SizeGuard& guard : guards) {
    if (holds(guard, sizes)) continue;
    userErrorWith(ErrorCode::ShapeMismatch, "{}: {}{}", guard.source,
                  violation(guard, sizes, sources), valuesIn(guard, sizes, sources));
  }
}

}  // namespace heddle
