#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/error.h"

namespace heddle {

// The kinds of tokens in the text forms of fusions and host programs. Outside of strings, white
// space and newlines only separate tokens, and a `#` starts a comment that ends with the line.
enum class TokenKind : uint8_t {
  End,
  Word,    // letters, digits and _, not starting with a digit: fusion, t, bf16, true, inf, nan
  Value,   // %name or %"name"; without quotes, the name may have dots inside, as in %y.part
  Mesh,    // @name
  Int,     // decimal digits
  Float,   // decimal digits with a fraction or an exponent
  String,  // "..." with the escapes \" \\ \n \t and \xHH
  Symbol,  // ( ) [ ] { } , : = + - * / % . -> < > ! == != <= >= && || | ; & ? ^ ~ $
};

struct Token {
  TokenKind kind = TokenKind::End;
  // Value and Mesh: the name without % or @. String: the content with decoded escapes. Other kinds:
  // the token as written.
  std::string text;
  uint64_t magnitude = 0;  // the value of an Int
  double number = 0;       // the value of an Int or a Float
  int line = 1;
  int column = 1;  // in bytes, from 1
};

// A cursor over the tokens of one text. The parsers of fusions and host programs read from it.
//
// Errors: UserError with a message such as "<origin>:<line>:<column>: found 'x', expected y".
// `origin` is the name of the text in these messages, such as the path of a file. `text` may
// contain any bytes. The constructor throws UserError with a position if the bytes do not form
// tokens.
class TokenStream {
 public:
  // The deepest nesting that parsers accept. The limit prevents a stack overflow, because parsers
  // are recursive.
  static constexpr int kMaxDepth = 200;
  // The most bytes of a word, or of the name of a value or a mesh. Passes derive many names from
  // one name, so long names would take too much time and memory.
  static constexpr size_t kLongestName = 1000;

  TokenStream(std::string_view text, std::string_view origin);

  const std::string& origin() const { return origin_; }
  // Returns the token that is `ahead` tokens after the next token, or End if the text has no such
  // token.
  const Token& peek(size_t ahead = 0) const;
  Token next();
  bool atEnd() const { return peek().kind == TokenKind::End; }
  // Returns the index of the next token. seek() moves the cursor to an index.
  size_t position() const { return position_; }
  void seek(size_t position) { position_ = position; }
  const std::vector<Token>& tokens() const { return tokens_; }  // the last token is End

  bool at(TokenKind kind) const { return peek().kind == kind; }
  bool atSymbol(std::string_view symbol, size_t ahead = 0) const;
  bool atWord(std::string_view word, size_t ahead = 0) const;
  // If the next token is this symbol or word, these functions consume it and return true. Otherwise
  // they consume nothing and return false.
  bool acceptSymbol(std::string_view symbol);
  bool acceptWord(std::string_view word);

  // The expect functions throw UserError if the next token is not the expected symbol, word or kind
  // of token. Otherwise they consume the token. A parameter `expected` describes the expected token
  // in the message of the error.
  void expectSymbol(std::string_view symbol);
  void expectWord(std::string_view word);
  // Consumes a token of this kind, which must be Word, Value, Mesh or String. Returns Token::text.
  std::string expectName(TokenKind kind, std::string_view expected);
  // Consumes an integer and a minus sign before it, if there is one. Returns the integer. Also
  // throws UserError if the integer does not fit in 64 bits.
  int64_t expectInt(std::string_view expected);
  void expectEnd();  // throws UserError if the text has more tokens

  // Throws UserError with the position of the next token: "found 'x', expected y".
  [[noreturn]] void fail(std::string_view expected) const;
  // Throws UserError with the position of `token`, followed by `message`.
  [[noreturn]] void failAt(const Token& token, std::string_view message) const;
  // Returns "<origin>:<line>: ". The parser of fusions puts it before the messages of FusionBuilder
  // (ir/graph/builder.h).
  std::string prefix(int line) const;

  // One level of nesting. A parser holds a Nesting object while it reads an expression, a list or a
  // body. The constructor throws UserError if the stream already has kMaxDepth Nesting objects.
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

// Returns the text of a token for error messages: 'x', "x" for a String, or `end of text`.
std::string describe(const Token& token);

// Returns whether `text` has the form of a Word token. If `dots_inside` is true, single dots are
// also allowed, except at the start and the end. The text form writes the name of a value without
// quotes if isWord(name, true) is true.
bool isWord(std::string_view text, bool dots_inside = false);

// Returns `text` as a String token, that is, in quotes and with escapes.
std::string quoted(std::string_view text);

}  // namespace heddle
