#include "ir/sizes/size_solve.h"

#include <algorithm>
#include <optional>
#include <string>

namespace heddle {
namespace {

// Returns whether the job or the value of an input defines the symbol. All other symbols get their
// values from the sizes of inputs, or from defaults.
bool isGiven(const std::string& symbol) {
  return symbol == "rank" || symbol == "ranks" || symbol.starts_with("@") || isScalarSymbol(symbol);
}

// Returns the symbols of the size that have no value, each once.
std::vector<std::string> unknownIn(const Size& size, const SizeBindings& known) {
  std::vector<std::string> symbols;
  size.collectSymbols(symbols);
  std::erase_if(symbols, [&](const std::string& symbol) { return known.count(symbol) > 0; });
  return symbols;
}

// Solves an operation with one unknown operand. `value` is the result of the operation, and `other`
// is the known operand. Returns nullopt on overflow, if the function cannot invert operations of
// this kind, or if it finds no integer factor of a product.
std::optional<int64_t> undone(Size::Kind kind, int64_t value, int64_t other, bool unknown_left) {
  int64_t result = 0;
  bool fits = false;
  if (kind == Size::Kind::Add) {
    fits = !__builtin_sub_overflow(value, other, &result);
  } else if (kind == Size::Kind::Sub) {
    fits = unknown_left ? !__builtin_add_overflow(value, other, &result)
                        : !__builtin_sub_overflow(other, value, &result);
  } else if (kind == Size::Kind::Mul && other > 0 && value % other == 0) {
    result = value / other;
    fits = true;
  }
  return fits ? std::optional<int64_t>(result) : std::nullopt;
}

// Solves size = value for the only unknown symbol of `size`. The loop descends from the root of the
// expression to the symbol, and inverts one operation per step.
std::optional<int64_t> solved(Size size, int64_t value, const SizeBindings& known) {
  while (size.kind() != Size::Kind::Symbol) {
    if (size.isConstant()) return std::nullopt;
    const bool left = !unknownIn(size.lhs(), known).empty();
    const bool right = !unknownIn(size.rhs(), known).empty();
    if (left == right) return std::nullopt;  // both operands contain the symbol
    const int64_t other = (left ? size.rhs() : size.lhs()).evaluate(lookupIn(known));
    const std::optional<int64_t> rest = undone(size.kind(), value, other, left);
    if (!rest) return std::nullopt;
    value = *rest;
    size = Size(left ? size.lhs() : size.rhs());
  }
  return value >= 0 ? std::optional<int64_t>(value) : std::nullopt;
}

}  // namespace

void solveSizes(const std::vector<std::pair<Size, int64_t>>& extents, SizeBindings& known) {
  size_t before = 0;
  do {
    before = known.size();
    for (const auto& [extent, value] : extents) {
      const std::vector<std::string> unknown = unknownIn(extent, known);
      if (unknown.size() != 1 || isGiven(unknown.front())) continue;
      if (const auto found = solved(extent, value, known)) known.emplace(unknown.front(), *found);
    }
  } while (known.size() != before);
}

}  // namespace heddle
