#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/error.h"

namespace heddle {

// Tokens of the text forms (fusion and host program alike). White space and newlines only separate;
// `#` starts a comment up to the end of the line.
enum class TokenKind : uint8_t {
  End,
  Word,    // fusion, t, bf16, true: letters, digits and _, no digit first
  Value,   // %name: text is `name`. Like a word, and may hold dots inside: %y.part
  Mesh,    // @name: text is `name`
  Int,     // decimal digits; magnitude
  Float,   // digits with a fraction or an exponent; number. inf and nan are words
  String,  // "...": text is the content, with \" \\ \n \t and \xHH decoded
  Symbol,  // ( ) [ ] { } , : = + - * / % . -> < > ! == != <= >= && || | ; & ? ^ ~ $
};

struct Token {
  TokenKind kind = TokenKind::End;
  std::string text;        // see above; a symbol's own characters; a number as written
  uint64_t magnitude = 0;  // Int
  double number = 0;       // Int and Float
  int line = 1;
  int column = 1;  // in bytes, from 1
};

// A cursor over the tokens of one text. Everything that reads text works on it and reports errors
// by it: UserError "<origin>:<line>:<column>: found 'x', expected y". Any bytes are accepted as
// input; what is no token is an error at its place.
class TokenStream {
 public:
  // Expressions nested deeper than this are an error, so that no input overflows the stack.
  static constexpr int kMaxDepth = 200;

  TokenStream(std::string_view text, std::string_view origin);

  const std::string& origin() const { return origin_; }
  const Token& peek(size_t ahead = 0) const;  // End for ever after the last
  Token next();
  bool atEnd() const { return peek().kind == TokenKind::End; }
  size_t position() const { return position_; }  // of the cursor, for seek()
  void seek(size_t position) { position_ = position; }
  const std::vector<Token>& tokens() const { return tokens_; }  // the last is End

  bool at(TokenKind kind) const { return peek().kind == kind; }
  bool atSymbol(std::string_view symbol, size_t ahead = 0) const;
  bool atWord(std::string_view word, size_t ahead = 0) const;
  bool acceptSymbol(std::string_view symbol);  // true: it was there and is taken
  bool acceptWord(std::string_view word);

  // Take what must come next, else fail. `expected` is said in the error.
  void expectSymbol(std::string_view symbol);                         // expected '<symbol>'
  void expectWord(std::string_view word);                             // expected '<word>'
  std::string expectName(TokenKind kind, std::string_view expected);  // Word, Value, Mesh, String
  int64_t expectInt(std::string_view expected);                       // with an optional minus
  void expectEnd();

  // At the current token: "found 'x', expected y".
  [[noreturn]] void fail(std::string_view expected) const;
  // At any token: the message as it is.
  [[noreturn]] void failAt(const Token& token, std::string_view message) const;
  // "<origin>:<line>: ", for errors of the builder.
  std::string prefix(int line) const;

  // Held while an expression, a list or a body is read; too deep nesting is an error.
  class Nesting {
   public:
    explicit Nesting(TokenStream& stream);
    ~Nesting() { --stream_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    TokenStream& stream_;
  };

 private:
  std::string origin_;
  std::vector<Token> tokens_;
  size_t position_ = 0;
  int depth_ = 0;
};

// A token as an error message shows it: 'x', or "end of text".
std::string describe(const Token& token);

// Whether `text` can stand as a word (dots inside allowed: as the name of a value).
bool isWord(std::string_view text, bool dots_inside = false);

// "..." with what a String token decodes.
std::string quoted(std::string_view text);

}  // namespace heddle
