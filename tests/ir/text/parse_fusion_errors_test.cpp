// Tests errors of the parser of fusions that tests/text/verify/parse_fusion.txt cannot contain.
#include <gtest/gtest.h>

#include "ir/base/error.h"
#include "ir/text/fusion_text.h"

namespace heddle::parse_fusion_errors_test {
namespace {

std::string errorOf(const std::string& text) {
  try {
    parseFusion(text, "f");
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

std::string inputError(const std::string& input) {
  return errorOf("heddle 1\nmesh @m = [y=2, x=2]\nfusion f(" + input + ") { return %a }");
}

TEST(ParseFusionErrors, WrongHeadersAreReported) {
  EXPECT_EQ(errorOf(""), "f:1:1: found end of text, expected 'heddle'");
  EXPECT_EQ(errorOf("heddle 2"), "f:1:8: found version 2, expected version 1");
  EXPECT_EQ(errorOf("heddle 1 program"), "f:1:10: found 'program', expected 'fusion'");
}

TEST(ParseFusionErrors, DeepAndLongSizesAreRefused) {
  const std::string deep = std::string(5000, '(') + "t";
  EXPECT_EQ(inputError("%a: f32[" + deep), "f:3:218: nested deeper than 200");
  const std::string minus = std::string(5000, '-') + "t";
  EXPECT_NE(inputError("%a: f32[" + minus).find("nested deeper than 200"), std::string::npos);
  std::string sum = "t";
  for (int i = 0; i < 3000; ++i) sum += "+t";
  EXPECT_NE(inputError("%a: f32[" + sum).find("a size of more than 1000 operators"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle::parse_fusion_errors_test
