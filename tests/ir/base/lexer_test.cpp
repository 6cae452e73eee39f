#include "ir/base/lexer.h"

#include <gtest/gtest.h>

#include <random>

#include "ir/text/fusion_text.h"

namespace heddle::lexer_test {
namespace {

std::string lexError(std::string_view text) {
  try {
    TokenStream stream(text, "f");
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Lexer, TokensHaveKindTextLineAndColumn) {
  TokenStream in("fusion %y.part @m # comment %no\n  4.5e-3 12 [i%2]", "f");
  struct Expected {
    TokenKind kind;
    const char* text;
    int line;
    int column;
  };
  const Expected expected[] = {
      {TokenKind::Word, "fusion", 1, 1}, {TokenKind::Value, "y.part", 1, 8},
      {TokenKind::Mesh, "m", 1, 16},     {TokenKind::Float, "4.5e-3", 2, 3},
      {TokenKind::Int, "12", 2, 10},     {TokenKind::Symbol, "[", 2, 13},
      {TokenKind::Word, "i", 2, 14},     {TokenKind::Symbol, "%", 2, 15},
      {TokenKind::Int, "2", 2, 16},      {TokenKind::Symbol, "]", 2, 17},
      {TokenKind::End, "", 2, 18},       {TokenKind::End, "", 2, 18},
  };
  for (const Expected& token : expected) {
    Token got = in.next();
    EXPECT_EQ(got.kind, token.kind) << token.text;
    EXPECT_EQ(got.text, token.text);
    EXPECT_EQ(got.line, token.line) << token.text;
    EXPECT_EQ(got.column, token.column) << token.text;
  }
}

TEST(Lexer, NumbersAreParsed) {
  TokenStream in("18446744073709551615 0.1 1e3", "f");
  EXPECT_EQ(in.next().magnitude, 18446744073709551615u);
  EXPECT_EQ(in.next().number, 0.1);
  EXPECT_EQ(in.next().number, 1000.0);
}

TEST(Lexer, FullRangeOfIntegersIsAccepted) {
  TokenStream in("-9223372036854775808 9223372036854775807", "f");
  EXPECT_EQ(in.expectInt("a number"), INT64_MIN);
  EXPECT_EQ(in.expectInt("a number"), INT64_MAX);
}

TEST(Lexer, QuotedStringsDecodeToTheSameBytes) {
  const std::string bytes = std::string("a\"b\\c\n\t\0\xff", 9) + "z";
  TokenStream in(heddle::quoted(bytes) + " %" + heddle::quoted("0 1"), "f");
  EXPECT_EQ(in.next().text, bytes);
  Token value = in.next();
  EXPECT_EQ(value.kind, TokenKind::Value);
  EXPECT_EQ(value.text, "0 1");
}

TEST(Lexer, ErrorsNameLineAndColumn) {
  EXPECT_EQ(lexError("a\n `"), "f:2:2: found '`', which starts no token");
  EXPECT_EQ(lexError("\xc3\xa4"), "f:1:1: found '\\xc3', which starts no token");
  EXPECT_EQ(lexError("\"abc"), "f:1:1: this string has no closing '\"'");
  EXPECT_EQ(lexError("\"a\\q\""),
            "f:1:1: found '\\q' in a string, expected \\\", \\\\, \\n, \\t or \\xHH");
  EXPECT_EQ(lexError("12x"), "f:1:1: found '12x', expected a number");
  EXPECT_EQ(lexError("99999999999999999999"),
            "f:1:1: integer 99999999999999999999 does not fit in 64 bits");
  EXPECT_EQ(lexError("1e999"), "f:1:1: number 1e999 is out of the range of f64");
  EXPECT_EQ(lexError("@ m"), "f:1:1: found '@', expected '@' and the name of a mesh");
}

TEST(Lexer, ErrorsSayWhatWasExpectedAndFound) {
  auto failure = [](auto use) -> std::string {
    TokenStream in("word %v", "f");
    try {
      use(in);
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(failure([](TokenStream& in) { in.expectSymbol("("); }),
            "f:1:1: found 'word', expected '('");
  EXPECT_EQ(failure([](TokenStream& in) { in.next(), in.expectInt("a size"); }),
            "f:1:6: found '%v', expected a size");
  EXPECT_EQ(failure([](TokenStream& in) { in.next(), in.next(), in.expectWord("mesh"); }),
            "f:1:8: found end of text, expected 'mesh'");
}

TEST(Lexer, LongNamesAreRefused) {
  const std::string longest(TokenStream::kLongestName, 'n');
  EXPECT_EQ(TokenStream(longest, "f").next().text, longest);
  for (const std::string sigil : {"", "%", "@"}) {
    const std::string text = " " + sigil + longest + "n";
    try {
      TokenStream(text, "f");
      FAIL() << sigil;
    } catch (const UserError& error) {
      EXPECT_STREQ(error.what(), "f:1:2: a name has 1001 bytes, and at most 1000 are allowed");
    }
  }
  EXPECT_THROW(TokenStream("%\"" + longest + "n\"", "f"), UserError);
}

// For any bytes, the lexer and the parser of fusions give a result or throw UserError.
TEST(Lexer, RandomBytesNeverCrash) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string text = round % 2 == 0 ? "heddle 1\nfusion f(%x: f32[t]) {" : "";
    for (size_t n = random() % 60; n > 0; --n) text += static_cast<char>(random() & 0xff);
    EXPECT_THROW(parseFusion(text), UserError);
  }
}

}  // namespace
}  // namespace heddle::lexer_test
