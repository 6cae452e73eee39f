#include "ir/base/size.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ir/base/check.h"

namespace heddle {

struct Size::Node {
  Kind kind = Kind::Constant;
  int64_t value = 0;
  std::string symbol;
  Size lhs{nullptr};
  Size rhs{nullptr};
  size_t hash = 0;        // equal sizes have equal hashes
  int64_t operators = 0;  // number of operators in the text; at most kMostOperators
  int32_t depth = 0;
  bool has_difference = false;
  bool has_scalar = false;
  bool has_given = false;
};

namespace {

// The functions that walk over an expression, except print(), remember each visited node that has
// at least this many operators, and do not walk over it again. For smaller nodes, a second visit is
// cheaper than remembering them.
constexpr int64_t kShared = 64;
// Size::binary() calls grownSum() for a sum if its operands have at least this many operators
// together. Shorter sums keep the form in which the user or a pass wrote them.
constexpr int64_t kLongSum = 8;
constexpr int64_t kMostOperators = int64_t{1} << 62;
constexpr int32_t kMostDepth = 4000;

size_t mixed(size_t hash, size_t value) {
  size_t x = hash * 0x9e3779b97f4a7c15u + value;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

// Splits a size into a constant factor and the remaining factor: 3*t gives (3, t), and the constant
// 3 gives (3, 1).
std::pair<int64_t, Size> multipleOf(const Size& size) {
  if (size.isConstant()) return {size.constant(), Size(1)};
  if (size.kind() == Size::Kind::Mul && size.lhs().isConstant()) {
    return {size.lhs().constant(), size.rhs()};
  }
  return {1, size};
}

// Adds two multiples of one size: t + t is 2*t, and 3 + 4 is 7. Returns nullopt if `a` and `b` are
// multiples of different sizes, or if the new factor overflows.
std::optional<Size> sumOfMultiples(const Size& a, const Size& b) {
  const auto [n, x] = multipleOf(a);
  const auto [m, y] = multipleOf(b);
  int64_t factor = 0;
  if (!(x == y) || __builtin_add_overflow(n, m, &factor)) return std::nullopt;
  return Size(factor) * x;
}

// Adds `b` to `a`, or to the last term of `a`, if the two are multiples of one size. For example,
// (h + 2*t) + t gives h + 3*t. Otherwise returns nullopt. Without this rule, the size of a tensor
// that many ops extend by t would become a very long sum.
std::optional<Size> grownSum(const Size& a, const Size& b) {
  if (const std::optional<Size> sum = sumOfMultiples(a, b)) return sum;
  if (a.kind() != Size::Kind::Add) return std::nullopt;
  const std::optional<Size> last = sumOfMultiples(a.rhs(), b);
  return last ? std::optional(a.lhs() + *last) : std::nullopt;
}

// Returns the result of the operation `kind` on a and b, or nullopt on overflow or division by
// zero. FloorDiv rounds toward minus infinity, and CeilDiv toward plus infinity. The result of Mod
// has the sign of b.
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
    case Size::Kind::Given:
      return a == -1 ? b : a;
    case Size::Kind::Constant:
    case Size::Kind::Symbol:
      break;
  }
  HEDDLE_CHECK(false, "size kind {} has no operands", static_cast<int>(kind));
}

// Returns a simpler form of the operation `kind` on a and b. The form has the value of the
// operation whenever the operation can be evaluated. Returns nullopt if no rule applies.
std::optional<Size> simplify(Size::Kind kind, const Size& a, const Size& b) {
  using K = Size::Kind;
  if (kind == K::Given) {
    return a.isConstant() && !a.isConstant(-1) ? std::optional(a) : std::nullopt;
  }
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
      if (a.kind() == K::Add && a.lhs() == b) return a.rhs();
      if (a.kind() == K::Add && a.rhs() == b) return a.lhs();
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
    case K::Given:
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
    case Size::Kind::Given:
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
    case Size::Kind::Given:
      return "given";
    case Size::Kind::Constant:
    case Size::Kind::Symbol:
      break;
  }
  HEDDLE_CHECK(false, "size kind {} has no operator", static_cast<int>(kind));
}

// Recursion is safe: Size::binary() limits how deep operators nest.
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

Size::Size(int64_t value) {
  Node node;
  node.value = value;
  node.hash = mixed(static_cast<size_t>(Kind::Constant), static_cast<size_t>(value));
  node.has_difference = value < 0;
  node_ = std::make_shared<const Node>(std::move(node));
}

Size Size::symbol(std::string name) {
  Node node;
  node.kind = Kind::Symbol;
  node.hash = mixed(static_cast<size_t>(Kind::Symbol), std::hash<std::string>()(name));
  node.has_scalar = isScalarSymbol(name);
  node.symbol = std::move(name);
  return Size(std::make_shared<const Node>(std::move(node)));
}

Size Size::binary(Kind kind, const Size& a, const Size& b) {
  if (std::optional<Size> simple = simplify(kind, a, b)) return *simple;
  if (kind == Kind::Add && a.node_->operators + b.node_->operators >= kLongSum) {
    if (std::optional<Size> sum = a.isConstant() ? grownSum(b, a) : grownSum(a, b)) return *sum;
  }
  // Make a constant factor the left operand, and a constant addend the right operand. Then 2*t and
  // t*2 are equal.
  const bool one_constant = a.isConstant() != b.isConstant();
  const bool swap = one_constant && ((kind == Kind::Mul && b.isConstant()) ||
                                     (kind == Kind::Add && a.isConstant()));
  Node node;
  node.kind = kind;
  node.lhs = swap ? b : a;
  node.rhs = swap ? a : b;
  const Node& left = *node.lhs.node_;
  const Node& right = *node.rhs.node_;
  node.hash = mixed(mixed(static_cast<size_t>(kind), left.hash), right.hash);
  const bool fits = left.operators < kMostOperators - right.operators;  // the sum may overflow
  node.operators = fits ? left.operators + right.operators + 1 : kMostOperators;
  node.depth = std::max(left.depth, right.depth) + 1;
  node.has_difference = kind == Kind::Sub || left.has_difference || right.has_difference;
  node.has_scalar = left.has_scalar || right.has_scalar;
  node.has_given = kind == Kind::Given || left.has_given || right.has_given;
  HEDDLE_USER_CHECK(node.depth <= kMostDepth, "a size has operators that nest more than {} deep",
                    kMostDepth);
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

bool Size::hasDifference() const { return node_->has_difference; }
bool Size::hasScalar() const { return node_->has_scalar; }
bool Size::hasGiven() const { return node_->has_given; }

bool Size::operator==(const Size& other) const {
  if (node_ == other.node_) return true;
  if (node_->hash != other.node_->hash) return false;
  std::set<std::pair<const Node*, const Node*>> equal;  // pairs that were compared already
  const auto same = [&](const auto& self, const Node& a, const Node& b) -> bool {
    if (&a == &b) return true;
    if (a.hash != b.hash || a.kind != b.kind || a.operators != b.operators) return false;
    if (a.kind == Kind::Constant) return a.value == b.value;
    if (a.kind == Kind::Symbol) return a.symbol == b.symbol;
    if (a.operators >= kShared && !equal.insert({&a, &b}).second) return true;
    return self(self, *a.lhs.node_, *b.lhs.node_) && self(self, *a.rhs.node_, *b.rhs.node_);
  };
  return same(same, *node_, *other.node_);
}

int64_t Size::evaluate(const Lookup& lookup) const {
  if (isConstant()) return node_->value;
  if (kind() == Kind::Symbol) {
    const std::optional<int64_t> value = lookup(node_->symbol);
    HEDDLE_USER_CHECK(value.has_value(), "size '{}' has no value", node_->symbol);
    return *value;
  }
  std::unordered_map<const Node*, int64_t> values;
  const auto evaluated = [&](const auto& self, const Size& size) -> int64_t {
    const Node& node = *size.node_;
    if (node.kind == Kind::Constant) return node.value;
    if (node.kind == Kind::Symbol) {
      std::optional<int64_t> value = lookup(node.symbol);
      HEDDLE_USER_CHECK(value.has_value(), "size '{}' has no value", node.symbol);
      return *value;
    }
    const bool shared = node.operators >= kShared;
    if (shared) {
      if (const auto found = values.find(&node); found != values.end()) return found->second;
    }
    const int64_t a = self(self, node.lhs);
    if (node.kind == Kind::Given && a != -1) return a;
    const int64_t b = self(self, node.rhs);
    std::optional<int64_t> value = apply(node.kind, a, b);
    HEDDLE_USER_CHECK(value.has_value(), "size '{}' {} (operands {} and {})", size.str(),
                      b == 0 ? "divides by zero" : "overflows 64 bits", a, b);
    if (shared) values.emplace(&node, *value);
    return *value;
  };
  return evaluated(evaluated, *this);
}

Size Size::substitute(const std::function<std::optional<Size>(const std::string&)>& replace) const {
  std::unordered_map<const Node*, Size> replaced;
  const auto substituted = [&](const auto& self, const Size& size) -> Size {
    const Node& node = *size.node_;
    if (node.kind == Kind::Constant) return size;
    if (node.kind == Kind::Symbol) return replace(node.symbol).value_or(size);
    const bool shared = node.operators >= kShared;
    if (shared) {
      if (const auto found = replaced.find(&node); found != replaced.end()) return found->second;
    }
    Size result = binary(node.kind, self(self, node.lhs), self(self, node.rhs));
    if (shared) replaced.emplace(&node, result);
    return result;
  };
  return substituted(substituted, *this);
}

void Size::collectSymbols(std::vector<std::string>& out) const {
  if (isConstant()) return;
  std::unordered_set<std::string> seen(out.begin(), out.end());
  collectSymbols(out, seen);
}

void Size::collectSymbols(std::vector<std::string>& out,
                          std::unordered_set<std::string>& seen) const {
  std::unordered_set<const Node*> visited;
  const auto collect = [&](const auto& self, const Node& node) -> void {
    if (node.kind == Kind::Constant) return;
    if (node.kind == Kind::Symbol) {
      if (seen.insert(node.symbol).second) out.push_back(node.symbol);
      return;
    }
    if (node.operators >= kShared && !visited.insert(&node).second) return;
    self(self, *node.lhs.node_);
    self(self, *node.rhs.node_);
  };
  collect(collect, *node_);
}

std::string Size::str() const {
  if (node_->operators > kMostPrinted) return fmt::format("<size {:016x}>", node_->hash);
  std::string out;
  print(*this, out);
  return out;
}

}  // namespace heddle
