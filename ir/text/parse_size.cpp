#include "ir/base/check.h"
#include "ir/text/text_pieces.h"

namespace heddle {
namespace {

using Combine = Size (*)(const Size&, const Size&);

// The largest number of operators in a size. A sum `a + b + ...` becomes a tree whose depth is the
// number of terms. The limit therefore also limits how deep functions on sizes recurse.
constexpr int kMaxOperators = 1000;

struct Function {
  std::string_view name;
  Combine combine;
};
constexpr Function kFunctions[] = {{"ceildiv", &Size::ceilDiv},
                                   {"floordiv", &Size::floorDiv},
                                   {"min", &Size::min},
                                   {"max", &Size::max},
                                   {"given", &Size::given}};

class SizeParser {
 public:
  explicit SizeParser(TokenStream& in) : in_(in) {}

  Size sum() {
    TokenStream::Nesting nesting(in_);
    Size left = term();
    while (in_.atSymbol("+") || in_.atSymbol("-")) {
      Token at = in_.next();
      Size right = term();
      left = combine(at, at.text == "+" ? &Size::add : &Size::sub, left, right);
    }
    return left;
  }

 private:
  Size term() {
    Size left = unary();
    for (;;) {
      // The lexer reads `t%h` as t and the value %h. In valid texts a space separates a size and a
      // following value, so `t%h` means `t % h`.
      if (in_.at(TokenKind::Value) && adjacent()) {
        Token at = in_.next();
        left = combine(at, &Size::mod, left, Size::symbol(at.text));
        continue;
      }
      Combine operation = in_.atSymbol("*")   ? &Size::mul
                          : in_.atSymbol("/") ? &Size::floorDiv
                          : in_.atSymbol("%") ? &Size::mod
                                              : nullptr;
      if (operation == nullptr) return left;
      Token at = in_.next();
      Size right = unary();
      left = combine(at, operation, left, right);
    }
  }

  // Returns whether no space separates the next token from the token before it. Always returns
  // false after a value: Token::text lacks the `%` and possible quotes, so it does not give the end
  // of the value.
  bool adjacent() const {
    const Token& left = in_.tokens()[in_.position() - 1];
    const Token& right = in_.peek();
    return left.kind != TokenKind::Value && left.line == right.line &&
           left.column + static_cast<int>(left.text.size()) == right.column;
  }

  Size unary() {
    if (in_.atSymbol("-") && in_.peek(1).kind != TokenKind::Int) {
      TokenStream::Nesting nesting(in_);
      Token at = in_.next();
      Size operand = unary();
      return combine(at, &Size::sub, Size(0), operand);
    }
    if (in_.atSymbol("-") || in_.at(TokenKind::Int)) return Size(in_.expectInt("a size"));
    return atom();
  }

  Size atom() {
    if (in_.acceptSymbol("(")) {
      Size inner = sum();
      in_.expectSymbol(")");
      return inner;
    }
    if (in_.at(TokenKind::Mesh)) return meshSymbol();
    if (in_.at(TokenKind::Value)) return Size::symbol(scalarSymbol(in_.next().text));
    if (!in_.at(TokenKind::Word)) in_.fail("a size");
    Token word = in_.next();
    if (!in_.atSymbol("(")) return Size::symbol(word.text);
    for (const Function& function : kFunctions) {
      if (function.name == word.text) return call(word, function.combine);
    }
    in_.failAt(word,
               fmt::format("found '{}', expected ceildiv, floordiv, min, max or given", word.text));
  }

  Size call(const Token& at, Combine operation) {
    in_.expectSymbol("(");
    Size left = sum();
    in_.expectSymbol(",");
    Size right = sum();
    in_.expectSymbol(")");
    return combine(at, operation, left, right);
  }

  // Parses @m.x or @m.x.index.
  Size meshSymbol() {
    std::string symbol = "@" + in_.next().text;
    in_.expectSymbol(".");
    symbol += "." + in_.expectName(TokenKind::Word, "a mesh axis: x, y or z");
    if (in_.acceptSymbol(".")) {
      in_.expectWord("index");
      symbol += ".index";
    }
    return Size::symbol(symbol);
  }

  Size combine(const Token& at, Combine operation, const Size& a, const Size& b) {
    if (++operators_ > kMaxOperators) {
      in_.failAt(at, fmt::format("a size of more than {} operators", kMaxOperators));
    }
    Size result = operation(a, b);
    // Size folds constants, except if the operation overflows or divides by zero. An unfolded
    // operation on constants is therefore an error.
    const bool folds = a.isConstant() && b.isConstant() && result.kind() != Size::Kind::Given;
    if (folds && !result.isConstant()) {
      in_.failAt(at, fmt::format("the size {} overflows or divides by zero", result.str()));
    }
    return result;
  }

  TokenStream& in_;
  int operators_ = 0;
};

template <class T, class ParseItem>
std::vector<T> parseList(TokenStream& in, ParseItem parse_item) {
  std::vector<T> items;
  in.expectSymbol("[");
  if (in.acceptSymbol("]")) return items;
  do {
    items.push_back(parse_item());
  } while (in.acceptSymbol(","));
  if (!in.acceptSymbol("]")) in.fail("',' or ']'");
  return items;
}

}  // namespace

Size parseSize(TokenStream& in) { return SizeParser(in).sum(); }

std::vector<Size> parseSizes(TokenStream& in) {
  return parseList<Size>(in, [&] { return parseSize(in); });
}

std::string parseDefaultSymbol(TokenStream& in) {
  if (in.at(TokenKind::Value)) return scalarSymbol(in.next().text);
  return in.expectName(TokenKind::Word, "a size symbol");
}

std::vector<int64_t> parseInts(TokenStream& in) {
  return parseList<int64_t>(in, [&] { return in.expectInt("an integer"); });
}

std::vector<bool> parseBools(TokenStream& in) {
  return parseList<bool>(in, [&] {
    if (!in.atWord("true") && !in.atWord("false")) in.fail("true or false");
    return in.next().text == "true";
  });
}

SizeGuard parseGuard(TokenStream& in) {
  SizeGuard guard;
  guard.a = parseSize(in);
  guard.at_most = in.acceptSymbol("<=");
  if (!guard.at_most && !in.acceptSymbol("==")) in.fail("'==' or '<='");
  guard.b = parseSize(in);
  guard.source = in.expectName(TokenKind::String, "where the sizes come from, as a string");
  return guard;
}

}  // namespace heddle
