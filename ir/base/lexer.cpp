#include "ir/base/lexer.h"

#include <array>
#include <charconv>
#include <utility>

#include "ir/base/check.h"

namespace heddle {
namespace {

// These functions replace <cctype>, which depends on the locale and is undefined for negative
// chars.
bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isWordStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isWordChar(char c) { return isWordStart(c) || isDigit(c); }

int hexDigit(char c) {
  if (isDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string showByte(char c) {
  auto byte = static_cast<unsigned char>(c);
  if (byte < 0x20 || byte >= 0x7f) return fmt::format("\\x{:02x}", byte);
  return std::string(1, c);
}

constexpr std::array<std::string_view, 7> kPairs = {"->", "==", "!=", "<=", ">=", "&&", "||"};
constexpr std::string_view kSingles = "()[]{},:=+-*/%.<>!|;&?^~$";

class Lexer {
 public:
  Lexer(std::string_view text, std::string_view origin) : text_(text), origin_(origin) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    while (skipSpace()) tokens.push_back(token());
    tokens.push_back(start(TokenKind::End));
    return tokens;
  }

 private:
  char at(size_t ahead = 0) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }
  bool done() const { return position_ >= text_.size(); }

  void advance() {
    if (text_[position_] == '\n') {
      ++line_;
      line_start_ = position_ + 1;
    }
    ++position_;
  }

  Token start(TokenKind kind) const {
    Token token;
    token.kind = kind;
    token.line = line_;
    token.column = static_cast<int>(position_ - line_start_) + 1;
    return token;
  }

  [[noreturn]] void fail(const Token& where, const std::string& message) const {
    userErrorWith(ErrorCode::Parse, "{}:{}:{}: {}", origin_, where.line, where.column, message);
  }

  // Skips white space and comments. Returns false at the end of the text.
  bool skipSpace() {
    while (!done()) {
      char c = at();
      if (c == '#') {
        while (!done() && at() != '\n') advance();
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        advance();
      } else {
        return true;
      }
    }
    return false;
  }

  Token token() {
    char c = at();
    if (isWordStart(c)) return wordToken(TokenKind::Word, 0, false);
    if (isDigit(c)) return numberToken();
    if (c == '"') return stringToken(TokenKind::String, 0);
    if (c == '%' && isWordStart(at(1))) return wordToken(TokenKind::Value, 1, true);
    if (c == '%' && at(1) == '"') return stringToken(TokenKind::Value, 1);
    if (c == '@') {
      if (isWordStart(at(1))) return wordToken(TokenKind::Mesh, 1, false);
      fail(start(TokenKind::Mesh), "found '@', expected '@' and the name of a mesh");
    }
    return symbolToken();
  }

  Token wordToken(TokenKind kind, size_t sigil, bool dots_inside) {
    Token token = start(kind);
    position_ += sigil;
    size_t begin = position_;
    while (isWordChar(at()) || (dots_inside && at() == '.' && isWordChar(at(1)))) ++position_;
    token.text = text_.substr(begin, position_ - begin);
    checkName(token);
    return token;
  }

  void checkName(const Token& token) const {
    if (token.text.size() <= TokenStream::kLongestName) return;
    fail(token, fmt::format("a name has {} bytes, and at most {} are allowed", token.text.size(),
                            TokenStream::kLongestName));
  }

  Token numberToken() {
    Token token = start(TokenKind::Int);
    size_t begin = position_;
    while (isDigit(at())) ++position_;
    if (at() == '.' && isDigit(at(1))) {
      token.kind = TokenKind::Float;
      ++position_;
      while (isDigit(at())) ++position_;
    }
    size_t sign = at(1) == '+' || at(1) == '-' ? 1 : 0;
    if ((at() == 'e' || at() == 'E') && isDigit(at(1 + sign))) {
      token.kind = TokenKind::Float;
      position_ += 1 + sign;
      while (isDigit(at())) ++position_;
    }
    token.text = text_.substr(begin, position_ - begin);
    if (isWordChar(at())) {
      fail(token, fmt::format("found '{}{}', expected a number", token.text, at()));
    }
    convert(token);
    return token;
  }

  void convert(Token& token) const {
    const char* first = token.text.data();
    const char* last = first + token.text.size();
    if (token.kind == TokenKind::Int &&
        std::from_chars(first, last, token.magnitude).ec != std::errc()) {
      fail(token, fmt::format("integer {} does not fit in 64 bits", token.text));
    }
    if (std::from_chars(first, last, token.number).ec != std::errc()) {
      fail(token, fmt::format("number {} is out of the range of f64", token.text));
    }
  }

  Token stringToken(TokenKind kind, size_t sigil) {
    Token token = start(kind);
    position_ += sigil + 1;
    while (!done() && at() != '"') {
      if (at() != '\\') {
        token.text += at();
        advance();
      } else {
        token.text += escape(token);
      }
    }
    if (done()) fail(token, "this string has no closing '\"'");
    ++position_;
    if (kind == TokenKind::Value) checkName(token);
    return token;
  }

  char escape(const Token& string) {
    char c = at(1);
    if (c == 'x' && hexDigit(at(2)) >= 0 && hexDigit(at(3)) >= 0) {
      int byte = hexDigit(at(2)) * 16 + hexDigit(at(3));
      position_ += 4;
      return static_cast<char>(byte);
    }
    position_ += 2;
    if (c == '"' || c == '\\') return c;
    if (c == 'n') return '\n';
    if (c == 't') return '\t';
    fail(string, fmt::format("found '\\{}' in a string, expected \\\", \\\\, \\n, \\t or \\xHH",
                             showByte(c)));
  }

  Token symbolToken() {
    Token token = start(TokenKind::Symbol);
    for (std::string_view pair : kPairs) {
      if (text_.substr(position_, 2) == pair) {
        token.text = pair;
        position_ += 2;
        return token;
      }
    }
    if (kSingles.find(at()) == std::string_view::npos) {
      fail(token, fmt::format("found '{}', which starts no token", showByte(at())));
    }
    token.text = text_.substr(position_, 1);
    ++position_;
    return token;
  }

  std::string_view text_;
  std::string_view origin_;
  size_t position_ = 0;
  int line_ = 1;
  size_t line_start_ = 0;
};

}  // namespace

TokenStream::TokenStream(std::string_view text, std::string_view origin)
    : origin_(origin), tokens_(Lexer(text, origin).run()) {}

const Token& TokenStream::peek(size_t ahead) const {
  return tokens_[std::min(position_ + ahead, tokens_.size() - 1)];
}

Token TokenStream::next() {
  Token token = peek();
  if (position_ + 1 < tokens_.size()) ++position_;
  return token;
}

bool TokenStream::atSymbol(std::string_view symbol, size_t ahead) const {
  const Token& token = peek(ahead);
  return token.kind == TokenKind::Symbol && token.text == symbol;
}

bool TokenStream::atWord(std::string_view word, size_t ahead) const {
  const Token& token = peek(ahead);
  return token.kind == TokenKind::Word && token.text == word;
}

bool TokenStream::acceptSymbol(std::string_view symbol) {
  if (!atSymbol(symbol)) return false;
  next();
  return true;
}

bool TokenStream::acceptWord(std::string_view word) {
  if (!atWord(word)) return false;
  next();
  return true;
}

void TokenStream::expectSymbol(std::string_view symbol) {
  if (!acceptSymbol(symbol)) fail(fmt::format("'{}'", symbol));
}

void TokenStream::expectWord(std::string_view word) {
  if (!acceptWord(word)) fail(fmt::format("'{}'", word));
}

std::string TokenStream::expectName(TokenKind kind, std::string_view expected) {
  if (!at(kind)) fail(expected);
  return next().text;
}

int64_t TokenStream::expectInt(std::string_view expected) {
  bool negative = atSymbol("-") && peek(1).kind == TokenKind::Int;
  if (!negative && !at(TokenKind::Int)) fail(expected);
  if (negative) next();
  constexpr uint64_t kLimit = uint64_t{1} << 63;
  Token token = next();
  if (token.magnitude > kLimit - (negative ? 0 : 1)) {
    failAt(token, fmt::format("integer {} does not fit in 64 bits", token.text));
  }
  // Negate the magnitude as an unsigned number, because 2^63 does not fit in int64_t.
  return static_cast<int64_t>(negative ? ~token.magnitude + 1 : token.magnitude);
}

void TokenStream::expectEnd() {
  if (!atEnd()) fail("end of text");
}

void TokenStream::fail(std::string_view expected) const {
  failAt(peek(), fmt::format("found {}, expected {}", describe(peek()), expected));
}

void TokenStream::failAt(const Token& token, std::string_view message) const {
  userErrorWith(ErrorCode::Parse, "{}:{}:{}: {}", origin_, token.line, token.column, message);
}

std::string TokenStream::prefix(int line) const { return fmt::format("{}:{}: ", origin_, line); }

TokenStream::Nesting::Nesting(TokenStream& stream) : stream_(stream) {
  if (stream_.depth_ >= kMaxDepth) {
    stream_.failAt(stream_.peek(), fmt::format("nested deeper than {}", kMaxDepth));
  }
  ++stream_.depth_;
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::End:
      return "end of text";
    case TokenKind::Value:
      return fmt::format("'%{}'", isWord(token.text, true) ? token.text : quoted(token.text));
    case TokenKind::Mesh:
      return fmt::format("'@{}'", token.text);
    case TokenKind::String:
      return quoted(token.text);
    case TokenKind::Word:
    case TokenKind::Int:
    case TokenKind::Float:
    case TokenKind::Symbol:
      break;
  }
  return fmt::format("'{}'", token.text);
}

bool isWord(std::string_view text, bool dots_inside) {
  if (text.empty() || !isWordStart(text[0]) || text.back() == '.') return false;
  for (size_t i = 1; i < text.size(); ++i) {
    if (!isWordChar(text[i]) && !(dots_inside && text[i] == '.' && text[i - 1] != '.'))
      return false;
  }
  return true;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += showByte(c);
    }
  }
  return out + "\"";
}

}  // namespace heddle
