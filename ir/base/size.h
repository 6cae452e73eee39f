#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace heddle {

// A symbolic size: an exact integer expression over named symbols, such as `ceildiv(t, 4) * h`.
//
// In a fusion (ir/graph/fusion.h), a symbol such as `t` names an extent, and a symbol such as `%n`
// stands for the value of an input (see below). A host program (host/program/program.h) has these
// symbols in addition:
//  - `rank`: the number of this rank in the job
//  - `ranks`: the number of ranks in the job
//  - `@m.x`: the extent of axis x of mesh @m
//  - `@m.x.index`: the coordinate of this rank on axis x of mesh @m
//  - the indices of the loops around an instruction
//
// A symbol that starts with `%` is the value of an integer input without axes: `%n`. scalarSymbol()
// returns the symbol of an input. The symbol `%n` is different from a size `n`.
//
// Values:   immutable; copies share one tree. Several threads may use a Size.
// Equality: two sizes are equal if their simplified expressions have the same structure. Every new
//           size is simplified. For example, constants are folded, neutral elements (t + 0, t * 1)
//           are dropped, and t - t becomes 0. A constant operand of a sum or product is moved to a
//           fixed side. A term that is added to a long sum is joined with the last term of the sum
//           if both are multiples of one size: adding t to (... + 2*t) gives (... + 3*t).
// Sharing:  copies of a size share their operands. An expression that is built in n steps may
//           therefore have 2^n operators when it is written out. All functions except str() visit a
//           large shared operand only once, so they stay fast.
// Errors:   evaluate() throws UserError with the expression if int64 overflows or a divisor is 0.
//           Functions that build an expression throw UserError if its operators nest too deep.
class Size {
 public:
  // clang-format off
  enum class Kind : uint8_t {
    Constant, Symbol, Add, Sub, Mul, FloorDiv, CeilDiv, Mod, Min, Max,
    Given  // given(a, b) is b if a is -1; otherwise it is a
  };
  // clang-format on

  Size() : Size(0) {}
  Size(int64_t value);  // NOLINT: implicit, so that callers can write an extent as a number
  // Converts the name of a symbol implicitly, so that callers can write {"t", "h"}. Throws
  // UserError unless the name consists of letters, digits and '_' and does not begin with a digit.
  // After an initial '%', the name may also contain single dots inside.
  template <class Name>
  requires std::convertible_to<const Name&, std::string_view> &&
      (!std::same_as<Name, std::nullptr_t>)Size(const Name& name)  // NOLINT: implicit
      : Size(named(std::string_view(name))) {}
  static Size symbol(std::string name);  // accepts every name, such as `@m.x` or `%"0.n"`

  Kind kind() const;
  bool isConstant() const { return kind() == Kind::Constant; }
  bool isConstant(int64_t value) const;
  int64_t constant() const;               // requires kind() == Constant
  const std::string& symbolName() const;  // requires kind() == Symbol
  // lhs() and rhs() require a kind with two operands.
  const Size& lhs() const;
  const Size& rhs() const;

  bool operator==(const Size& other) const;  // structural

  // A function that returns the value of a symbol, or nullopt if the symbol has no value.
  using Lookup = std::function<std::optional<int64_t>(const std::string&)>;

  // Returns the value. Throws UserError for a symbol without a value, an overflow or a division by
  // zero. The message names the symbol or the expression.
  int64_t evaluate(const Lookup& lookup) const;

  // Returns the expression with its symbols replaced. `replace` returns the new size of a symbol,
  // or nullopt to keep the symbol.
  Size substitute(const std::function<std::optional<Size>(const std::string&)>& replace) const;

  // Appends the symbols of the expression in order of first appearance. A symbol that `out` already
  // contains is not appended again.
  void collectSymbols(std::vector<std::string>& out) const;
  // Appends the symbols in the same way. `seen` must contain the symbols of `out`; this function
  // adds the new ones. For many sizes with many symbols, it is faster than the function above,
  // which builds such a set in every call.
  void collectSymbols(std::vector<std::string>& out, std::unordered_set<std::string>& seen) const;

  // Returns whether the expression contains a subtraction or a negative constant.
  bool hasDifference() const;
  // Returns whether the expression contains the value of an input, such as `%n`.
  bool hasScalar() const;
  bool hasGiven() const;  // returns whether the expression contains given()

  // Returns infix text: `t`, `2*h`, `ceildiv(t, 4)`, `(t + 1) % 2`. The text of up to 1000
  // operators parses back to an equal Size, unless its brackets nest too deep for the parser. A
  // size of more than kMostPrinted operators has a short text that does not parse and contains a
  // hash of the expression.
  static constexpr int64_t kMostPrinted = 10000;
  std::string str() const;

  struct Node;

 private:
  explicit Size(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  // Throws UserError if operands nest too deep, because the functions above are recursive.
  static Size binary(Kind kind, const Size& a, const Size& b);
  static Size named(std::string_view name);
  std::shared_ptr<const Node> node_;

 public:
  static Size add(const Size& a, const Size& b) { return binary(Kind::Add, a, b); }
  static Size sub(const Size& a, const Size& b) { return binary(Kind::Sub, a, b); }
  static Size mul(const Size& a, const Size& b) { return binary(Kind::Mul, a, b); }
  static Size floorDiv(const Size& a, const Size& b) { return binary(Kind::FloorDiv, a, b); }
  static Size ceilDiv(const Size& a, const Size& b) { return binary(Kind::CeilDiv, a, b); }
  // The result has the sign of b.
  static Size mod(const Size& a, const Size& b) { return binary(Kind::Mod, a, b); }
  static Size min(const Size& a, const Size& b) { return binary(Kind::Min, a, b); }
  static Size max(const Size& a, const Size& b) { return binary(Kind::Max, a, b); }
  // The size of an axis for which the user may write -1, which means "the size that fits". `a` is
  // the size that the user wrote, and `b` is the size that fits. The value is `a`, or `b` if `a` is
  // -1. `b` is evaluated only if `a` is -1. given(-1, b) is not simplified, so that messages can
  // still print the -1 of the user.
  static Size given(const Size& a, const Size& b) { return binary(Kind::Given, a, b); }
};

inline Size operator+(const Size& a, const Size& b) { return Size::add(a, b); }
inline Size operator-(const Size& a, const Size& b) { return Size::sub(a, b); }
inline Size operator*(const Size& a, const Size& b) { return Size::mul(a, b); }

// Returns the symbol for the value of the input with this name: `%n`, or `%"0.n"` if the text form
// writes the name in quotes.
std::string scalarSymbol(std::string_view input);
inline bool isScalarSymbol(std::string_view symbol) { return symbol.starts_with('%'); }

// Values of symbols. The map is ordered, so that all ranks iterate in the same order.
using SizeBindings = std::map<std::string, int64_t>;

// Returns a Lookup that reads `bindings`. The bindings must outlive the Lookup.
Size::Lookup lookupIn(const SizeBindings& bindings);

// Returns the product of all sizes, or 1 if there are none.
Size product(const std::vector<Size>& sizes);

}  // namespace heddle
