#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

// A symbolic size: an exact integer expression over named symbols, such as `ceildiv(t, 4) * h`.
//
// Symbols of a fusion are its extents (`t`, `h`). A host program may also use `rank` (this rank in
// the job), `ranks` (ranks in the job), `@m.x` (extent of mesh axis x), `@m.x.index` (this rank's
// coordinate on it) and the index names of the loops around an instruction.
//
// An immutable value: copies share one tree. Constants fold and sums/products of constants
// normalise on construction, so equal() is structural equality of the simplified form.
// Thread-safe as any immutable value. Overflow of int64 throws UserError naming the expression.
class Size {
 public:
  enum class Kind : uint8_t { Constant, Symbol, Add, Sub, Mul, FloorDiv, CeilDiv, Mod, Min, Max };

  Size() : Size(0) {}
  Size(int64_t value);  // NOLINT: an extent may be written as a plain number
  static Size symbol(std::string name);

  Kind kind() const;
  bool isConstant() const { return kind() == Kind::Constant; }
  bool isConstant(int64_t value) const;
  int64_t constant() const;               // kind() == Constant
  const std::string& symbolName() const;  // kind() == Symbol
  const Size& lhs() const;                // the binary kinds
  const Size& rhs() const;

  bool operator==(const Size& other) const;  // structural

  // Looks up a symbol; nullopt when it has no value.
  using Lookup = std::function<std::optional<int64_t>(const std::string&)>;

  // The value. UserError names the symbol without a value, the overflow, or the division by zero.
  int64_t evaluate(const Lookup& lookup) const;

  // Replaces symbols for which `replace` returns a value.
  Size substitute(const std::function<std::optional<Size>(const std::string&)>& replace) const;

  // Appends the symbols in order of first appearance, without repeats.
  void collectSymbols(std::vector<std::string>& out) const;

  // Infix text that parses back to an equal Size: `t`, `2*h`, `ceildiv(t, 4)`, `(t+1) % 2`.
  std::string str() const;

  struct Node;

 private:
  explicit Size(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  static Size binary(Kind kind, const Size& a, const Size& b);
  std::shared_ptr<const Node> node_;

 public:
  static Size add(const Size& a, const Size& b) { return binary(Kind::Add, a, b); }
  static Size sub(const Size& a, const Size& b) { return binary(Kind::Sub, a, b); }
  static Size mul(const Size& a, const Size& b) { return binary(Kind::Mul, a, b); }
  static Size floorDiv(const Size& a, const Size& b) { return binary(Kind::FloorDiv, a, b); }
  static Size ceilDiv(const Size& a, const Size& b) { return binary(Kind::CeilDiv, a, b); }
  static Size mod(const Size& a, const Size& b) { return binary(Kind::Mod, a, b); }  // sign of b
  static Size min(const Size& a, const Size& b) { return binary(Kind::Min, a, b); }
  static Size max(const Size& a, const Size& b) { return binary(Kind::Max, a, b); }
};

inline Size operator+(const Size& a, const Size& b) { return Size::add(a, b); }
inline Size operator-(const Size& a, const Size& b) { return Size::sub(a, b); }
inline Size operator*(const Size& a, const Size& b) { return Size::mul(a, b); }

// Values of symbols, ordered so that iteration is the same on every rank.
using SizeBindings = std::map<std::string, int64_t>;

Size::Lookup lookupIn(const SizeBindings& bindings);

// The product of all; 1 for none.
Size product(const std::vector<Size>& sizes);

}  // namespace heddle
