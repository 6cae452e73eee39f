// Tests sizes whose operands share parts. An expression of n steps may then have 2^n operators, so
// a walk that visits every operator would never end.
#include "ir/base/size.h"

#include <gtest/gtest.h>

#include "ir/base/error.h"

namespace heddle::base_test {
namespace {

constexpr int kSteps = 60;

// Each step contains the size of the step before twice, and no rule simplifies it. With n = `n`,
// the value grows by one in each step.
Size sharedSize(const std::string& symbol) {
  Size size = Size::symbol(symbol);
  for (int i = 0; i < kSteps; ++i) size = Size::max(size + 1, Size::min(size, 7));
  return size;
}

TEST(Size, SharedPartsAreEvaluatedOnce) {
  EXPECT_EQ(sharedSize("n").evaluate(lookupIn({{"n", 5}})), 5 + kSteps);
  EXPECT_THROW(sharedSize("n").evaluate(lookupIn({{"n", INT64_MAX - 3}})), UserError);
}

TEST(Size, SharedPartsAreComparedOnce) {
  EXPECT_TRUE(sharedSize("n") == sharedSize("n"));
  EXPECT_FALSE(sharedSize("n") == sharedSize("m"));
}

TEST(Size, SharedPartsAreSubstitutedOnce) {
  const auto rename = [](const std::string&) { return std::optional(Size::symbol("m")); };
  EXPECT_TRUE(sharedSize("n").substitute(rename) == sharedSize("m"));
}

TEST(Size, SharedPartsAreSearchedForSymbolsOnce) {
  std::vector<std::string> symbols = {"k"};
  Size::max(sharedSize("n"), sharedSize("m")).collectSymbols(symbols);
  EXPECT_EQ(symbols, (std::vector<std::string>{"k", "n", "m"}));
}

TEST(Size, TextOfVeryManyOperatorsIsShortAndDistinguishesSizes) {
  EXPECT_EQ(sharedSize("n").str(), sharedSize("n").str());
  EXPECT_NE(sharedSize("n").str(), sharedSize("m").str());
  EXPECT_LT(sharedSize("n").str().size(), size_t{100});
}

TEST(Size, DeepNestingIsAnErrorOfTheCaller) {
  const auto nest = [](int steps) {
    Size size = Size::symbol("n");
    for (int i = 0; i < steps; ++i) size = Size::floorDiv(size, 2) + 1;
    return size.evaluate(lookupIn({{"n", 8}}));
  };
  EXPECT_EQ(nest(1000), 1);
  EXPECT_THROW(nest(100000), UserError);
}

TEST(Size, MultiplesOfOneSizeAreAdded) {
  const Size n = Size::symbol("n");
  const Size m = Size::symbol("m");
  EXPECT_EQ((n + n).str(), "2*n");
  EXPECT_EQ((n + 2 * n + n * 3).str(), "6*n");
  EXPECT_EQ((n + m + m).str(), "n + 2*m");
  EXPECT_EQ((n + 1 + 1).str(), "n + 2");
  EXPECT_EQ((n + 1 + (-1)).str(), "n");
  EXPECT_EQ((n + m + n).str(), "n + m + n");
  const Size most = Size(INT64_MAX) * n;
  EXPECT_THROW((most + most).evaluate(lookupIn({{"n", 1}})), UserError);
}

// A chain of concatenations with itself doubles the size in each step.
TEST(Size, DoublingStaysSmall) {
  Size size = Size::symbol("n");
  for (int i = 0; i < 62; ++i) size = size + size;
  EXPECT_EQ(size.str(), "4611686018427387904*n");
  EXPECT_EQ(size.evaluate(lookupIn({{"n", 1}})), int64_t{1} << 62);
}

TEST(Size, DifferencesAndNegativeConstantsAreReported) {
  const Size n = Size::symbol("n");
  EXPECT_FALSE((2 * n + 1).hasDifference());
  EXPECT_TRUE((2 * (n - 1)).hasDifference());
  EXPECT_TRUE((n + (-1)).hasDifference());
  EXPECT_TRUE(Size::max(n, Size(-2)).hasDifference());
}

}  // namespace
}  // namespace heddle::base_test
