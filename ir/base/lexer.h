#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/error.h"

namespace heddle {

// The kinds of tokens in the text forms of fusions and host programs. White space and newlines only
// separate tokens. A comment starts with `#` and ends with the line.
enum class TokenKind : uint8_t {
  End,
  Word,    // fusion, t, bf16, true: letters, digits and _; the first is no digit
  Value,   // %name: text is `name`, a word that may have dots inside, as in %y.part
  Mesh,    // @name: text is `name`
  Int,     // decimal digits; the value is Token::magnitude
  Float,   // digits with a fraction or an exponent; the value is Token::number. inf, nan: Words
  String,  // "...": text is the content, with \" \\ \n \t and \xHH decoded
  Symbol,  // ( ) [ ] { } , : = + - * / % . -> < > ! == != <= >= && || | ; & ? ^ ~ $
};

struct Token {
  TokenKind kind = TokenKind::End;
  std::string text;        // as TokenKind states; of a Symbol or a number: as written
  uint64_t magnitude = 0;  // Int
  double number = 0;       // Int and Float
  int line = 1;
  int column = 1;  // in bytes, from 1
};

// A cursor over the tokens of one text. All parsers read from it.
//
// Errors: UserError "<origin>:<line>:<column>: found 'x', expected y". The constructor accepts any
// bytes and reports the position of the first one that starts no token.
class TokenStream {
 public:
  // The deepest nesting that parsers accept. The limit keeps an input from overflowing the stack.
  static constexpr int kMaxDepth = 200;

  TokenStream(std::string_view text, std::string_view origin);

  const std::string& origin() const { return origin_; }
  const Token& peek(size_t ahead = 0) const;  // returns End at the end and beyond
  Token next();
  bool atEnd() const { return peek().kind == TokenKind::End; }
  size_t position() const { return position_; }  // of the cursor; for seek()
  void seek(size_t position) { position_ = position; }
  const std::vector<Token>& tokens() const { return tokens_; }  // the last is End

  bool at(TokenKind kind) const { return peek().kind == kind; }
  bool atSymbol(std::string_view symbol, size_t ahead = 0) const;
  bool atWord(std::string_view word, size_t ahead = 0) const;
  // If the next token is this symbol or word, consume it and return true. Else return false.
  bool acceptSymbol(std::string_view symbol);
  bool acceptWord(std::string_view word);

  // Consume the next token. Throw UserError if it is not the expected one. `expected` describes
  // that token in the message.
  void expectSymbol(std::string_view symbol);                         // expected '<symbol>'
  void expectWord(std::string_view word);                             // expected '<word>'
  std::string expectName(TokenKind kind, std::string_view expected);  // Word, Value, Mesh, String
  int64_t expectInt(std::string_view expected);                       // with an optional minus
  void expectEnd();

  // Throws UserError at the current token: "found 'x', expected y".
  [[noreturn]] void fail(std::string_view expected) const;
  // Throws UserError with the position of the given token and the unchanged message.
  [[noreturn]] void failAt(const Token& token, std::string_view message) const;
  // Returns "<origin>:<line>: ", which parsers prepend to errors of FusionBuilder.
  std::string prefix(int line) const;

  // One level of nesting. A parser holds a Nesting object while it reads an expression, a list or a
  // body. The constructor throws UserError if more than kMaxDepth objects exist for the stream.
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

// Returns a token as an error message shows it: 'x', or "end of text".
std::string describe(const Token& token);

// Returns whether `text` is a Word token. With `dots_inside`, dots between letters are accepted
// too; such a text can be the name of a value without quotes.
bool isWord(std::string_view text, bool dots_inside = false);

// Returns `text` as a String token: in quotes and with escapes.
std::string quoted(std::string_view text);

}  // namespace heddle
