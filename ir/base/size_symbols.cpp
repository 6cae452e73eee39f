#include "ir/base/size_symbols.h"

#include <fmt/format.h>

#include <optional>

#include "ir/base/check.h"
#include "ir/base/lexer.h"

namespace heddle {
namespace {

using Kind = Size::Kind;

// The two sizes that the size of a shared axis combines (n and m in size_symbols.h).
struct Broadcast {
  Size a;
  Size b;
};

// Recognizes max(a, b) * min(1, min(a, b)), as FusionBuilder::symbolicAxis() writes it.
std::optional<Broadcast> broadcastIn(const Size& size) {
  if (size.kind() != Kind::Mul || size.lhs().kind() != Kind::Max) return std::nullopt;
  const Size& a = size.lhs().lhs();
  const Size& b = size.lhs().rhs();
  if (!(size.rhs() == Size::min(Size(1), Size::min(a, b)))) return std::nullopt;
  return Broadcast{a, b};
}

// Returns whether the text of the size contains `given(`, which marks an open size, or `max(`,
// which is part of the size of a shared axis. The check is fast even for a huge size: the text of a
// size of more than Size::kMostPrinted operators is short and contains neither. Such a size is
// therefore not replaced.
bool mayHideInternals(const Size& size) {
  const std::string text = size.str();
  return text.find("given(") != std::string::npos || text.find("max(") != std::string::npos;
}

// Implements writtenSize() if `values` is nullptr, and decidedSize() otherwise.
Size inWords(const Size& size, const SizeBindings* values) {
  if (size.kind() == Kind::Constant || size.kind() == Kind::Symbol) return size;
  const auto valueOf = [&](const Size& part) { return part.evaluate(lookupIn(*values)); };
  if (size.kind() == Kind::Given) {
    const bool is_open = values != nullptr && valueOf(size.lhs()) == -1;
    return inWords(is_open ? size.rhs() : size.lhs(), values);
  }
  if (const std::optional<Broadcast> found = broadcastIn(size)) {
    const Size a = inWords(found->a, values), b = inWords(found->b, values);
    if (values != nullptr) return valueOf(a) == 1 ? b : a;
    return Size::symbol(fmt::format("broadcast({}, {})", a.str(), b.str()));
  }
  const Size a = inWords(size.lhs(), values), b = inWords(size.rhs(), values);
  switch (size.kind()) {
    case Kind::Add:
      return a + b;
    case Kind::Sub:
      return a - b;
    case Kind::Mul:
      return a * b;
    case Kind::FloorDiv:
      return Size::floorDiv(a, b);
    case Kind::CeilDiv:
      return Size::ceilDiv(a, b);
    case Kind::Mod:
      return Size::mod(a, b);
    case Kind::Min:
      return Size::min(a, b);
    case Kind::Max:
      return Size::max(a, b);
    case Kind::Given:
    case Kind::Constant:
    case Kind::Symbol:
      break;
  }
  return size;
}

}  // namespace

std::string writtenSize(const Size& size) {
  return mayHideInternals(size) ? inWords(size, nullptr).str() : size.str();
}

Size decidedSize(const Size& size, const SizeBindings& values) {
  return mayHideInternals(size) ? inWords(size, &values) : size;
}

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

Size Size::named(std::string_view name) {
  const bool is_scalar = name.starts_with('%');
  HEDDLE_USER_CHECK(isWord(is_scalar ? name.substr(1) : name, is_scalar),
                    "'{}' is not the name of a size, as in n", name);
  return symbol(std::string(name));
}

}  // namespace heddle
