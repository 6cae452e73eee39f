#include "ir/base/size.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "ir/base/error.h"

namespace heddle {

struct Size::Node {
  Kind kind = Kind::Constant;
  int64_t value = 0;
  std::string symbol;
  Size lhs{nullptr};
  Size rhs{nullptr};
};

namespace {

// Returns `a kind b`, or nullopt on overflow or division by zero. FloorDiv rounds toward minus
// infinity, and CeilDiv toward plus infinity. The result of Mod has the sign of b.
std::optional<int64_t> apply(Size::Kind kind, int64_t a, int64_t b) {
  int64_t r = 0;
  switch (kind) {
    case Size::Kind::Add:
      return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case Size::Kind::Sub:
      return __builtin_sub_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case Size::Kind::Mul:
      return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case Size::Kind::FloorDiv:
    case Size::Kind::CeilDiv:
    case Size::Kind::Mod: {
      if (b == 0 || (a == INT64_MIN && b == -1)) return std::nullopt;
      const int64_t quotient = a / b;
      const int64_t remainder = a % b;
      const bool inexact = remainder != 0;
      const bool same_sign = (remainder < 0) == (b < 0);
      if (kind == Size::Kind::Mod) return inexact && !same_sign ? remainder + b : remainder;
      if (kind == Size::Kind::FloorDiv) return inexact && !same_sign ? quotient - 1 : quotient;
      return inexact && same_sign ? quotient + 1 : quotient;
    }
    case Size::Kind::Min:
      return std::min(a, b);
    case Size::Kind::Max:
      return std::max(a, b);
    case Size::Kind::Constant:
    case Size::Kind::Symbol:
      break;
  }
  HEDDLE_CHECK(false, "size kind {} has no operands", static_cast<int>(kind));
}

// Returns a simpler form of `a kind b`, without knowing the values of symbols. Returns nullopt if
// no rule applies.
std::optional<Size> simplify(Size::Kind kind, const Size& a, const Size& b) {
  using K = Size::Kind;
  if (a.isConstant() && b.isConstant()) {
    if (std::optional<int64_t> value = apply(kind, a.constant(), b.constant())) return Size(*value);
    return std::nullopt;  // evaluate() reports the error later
  }
  switch (kind) {
    case K::Add:
      if (a.isConstant(0)) return b;
      if (b.isConstant(0)) return a;
      break;
    case K::Sub:
      if (b.isConstant(0)) return a;
      if (a == b) return Size(0);
      break;
    case K::Mul:
      if (a.isConstant(1)) return b;
      if (b.isConstant(1)) return a;
      if (a.isConstant(0) || b.isConstant(0)) return Size(0);
      break;
    case K::FloorDiv:
    case K::CeilDiv:
      if (b.isConstant(1)) return a;
      break;
    case K::Mod:
      if (b.isConstant(1)) return Size(0);
      break;
    case K::Min:
    case K::Max:
      if (a == b) return a;
      break;
    case K::Constant:
    case K::Symbol:
      break;
  }
  return std::nullopt;
}

int precedence(Size::Kind kind) {
  switch (kind) {
    case Size::Kind::Add:
    case Size::Kind::Sub:
      return 1;
    case Size::Kind::Mul:
    case Size::Kind::Mod:
      return 2;
    case Size::Kind::Constant:
    case Size::Kind::Symbol:
    case Size::Kind::FloorDiv:
    case Size::Kind::CeilDiv:
    case Size::Kind::Min:
    case Size::Kind::Max:
      return 3;
  }
  HEDDLE_CHECK(false, "size kind {} is not in the enum", static_cast<int>(kind));
}

const char* spelling(Size::Kind kind) {
  switch (kind) {
    case Size::Kind::Add:
      return " + ";
    case Size::Kind::Sub:
      return " - ";
    case Size::Kind::Mul:
      return "*";
    case Size::Kind::Mod:
      return " % ";
    case Size::Kind::FloorDiv:
      return "floordiv";
    case Size::Kind::CeilDiv:
      return "ceildiv";
    case Size::Kind::Min:
      return "min";
    case Size::Kind::Max:
      return "max";
    case Size::Kind::Constant:
    case Size::Kind::Symbol:
      break;
  }
  HEDDLE_CHECK(false, "size kind {} has no operator", static_cast<int>(kind));
}

// The function is recursive. The depth of recursion is limited, because the parser limits the depth
// of sizes (ir/text/parse_size.cpp).
void print(const Size& size, std::string& out) {
  const Size::Kind kind = size.kind();
  if (kind == Size::Kind::Constant) {
    out += std::to_string(size.constant());
    return;
  }
  if (kind == Size::Kind::Symbol) {
    out += size.symbolName();
    return;
  }
  const int level = precedence(kind);
  if (level == 3) {
    out += spelling(kind);
    out += '(';
    print(size.lhs(), out);
    out += ", ";
    print(size.rhs(), out);
    out += ')';
    return;
  }
  auto operand = [&](const Size& side, bool brackets) {
    if (brackets) out += '(';
    print(side, out);
    if (brackets) out += ')';
  };
  auto negative = [](const Size& side) { return side.isConstant() && side.constant() < 0; };
  operand(size.lhs(), precedence(size.lhs().kind()) < level);
  out += spelling(kind);
  operand(size.rhs(), precedence(size.rhs().kind()) <= level || negative(size.rhs()));
}

}  // namespace

Size::Size(int64_t value)
    : node_(std::make_shared<const Node>(
          Node{Kind::Constant, value, {}, Size(nullptr), Size(nullptr)})) {}

Size Size::symbol(std::string name) {
  Node node;
  node.kind = Kind::Symbol;
  node.symbol = std::move(name);
  return Size(std::make_shared<const Node>(std::move(node)));
}

Size Size::binary(Kind kind, const Size& a, const Size& b) {
  if (std::optional<Size> simple = simplify(kind, a, b)) return *simple;
  // Make a constant factor the left operand, and a constant addend the right operand. Then 2*t and
  // t*2 are equal.
  const bool one_constant = a.isConstant() != b.isConstant();
  const bool swap = one_constant && ((kind == Kind::Mul && b.isConstant()) ||
                                     (kind == Kind::Add && a.isConstant()));
  Node node;
  node.kind = kind;
  node.lhs = swap ? b : a;
  node.rhs = swap ? a : b;
  return Size(std::make_shared<const Node>(std::move(node)));
}

Size::Kind Size::kind() const { return node_->kind; }

bool Size::isConstant(int64_t value) const { return isConstant() && node_->value == value; }

int64_t Size::constant() const {
  HEDDLE_CHECK(isConstant(), "size {} is not a constant", str());
  return node_->value;
}

const std::string& Size::symbolName() const {
  HEDDLE_CHECK(kind() == Kind::Symbol, "size {} is not a symbol", str());
  return node_->symbol;
}

const Size& Size::lhs() const { return node_->lhs; }
const Size& Size::rhs() const { return node_->rhs; }

bool Size::operator==(const Size& other) const {
  if (node_ == other.node_) return true;
  if (node_->kind != other.node_->kind) return false;
  if (node_->kind == Kind::Constant) return node_->value == other.node_->value;
  if (node_->kind == Kind::Symbol) return node_->symbol == other.node_->symbol;
  return node_->lhs == other.node_->lhs && node_->rhs == other.node_->rhs;
}

int64_t Size::evaluate(const Lookup& lookup) const {
  if (isConstant()) return node_->value;
  if (kind() == Kind::Symbol) {
    std::optional<int64_t> value = lookup(node_->symbol);
    HEDDLE_USER_CHECK(value.has_value(), "size '{}' has no value", node_->symbol);
    return *value;
  }
  const int64_t a = node_->lhs.evaluate(lookup);
  const int64_t b = node_->rhs.evaluate(lookup);
  std::optional<int64_t> value = apply(kind(), a, b);
  HEDDLE_USER_CHECK(value.has_value(), "size '{}' {} (operands {} and {})", str(),
                    b == 0 ? "divides by zero" : "overflows 64 bits", a, b);
  return *value;
}

Size Size::substitute(const std::function<std::optional<Size>(const std::string&)>& replace) const {
  if (isConstant()) return *this;
  if (kind() == Kind::Symbol) return replace(node_->symbol).value_or(*this);
  return binary(kind(), node_->lhs.substitute(replace), node_->rhs.substitute(replace));
}

void Size::collectSymbols(std::vector<std::string>& out) const {
  if (isConstant()) return;
  if (kind() == Kind::Symbol) {
    if (std::find(out.begin(), out.end(), node_->symbol) == out.end()) out.push_back(node_->symbol);
    return;
  }
  node_->lhs.collectSymbols(out);
  node_->rhs.collectSymbols(out);
}

std::string Size::str() const {
  std::string out;
  print(*this, out);
  return out;
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
