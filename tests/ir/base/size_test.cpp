// Tests sizes in which the same part occurs many times. For example, 60 steps give 2^60 operators.
// Functions must visit a shared part only once, or they would never end.
#include "ir/base/size.h"

#include <gtest/gtest.h>

#include "ir/base/error.h"
#include "ir/base/size_symbols.h"
#include "ir/sizes/size_guard.h"

namespace heddle::size_test {
namespace {

constexpr int kSteps = 60;

// Returns a size after kSteps steps. Each step contains the previous size twice, cannot be
// simplified, and adds one to the value.
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
  EXPECT_EQ(nest(1000), 2);
  EXPECT_THROW(nest(100000), UserError);
}

// Returns the sum of `count` times the size `term`, added one after another to `size`.
Size plus(Size size, const Size& term, int count) {
  for (int i = 0; i < count; ++i) size = size + term;
  return size;
}

TEST(Size, ShortSumsKeepTheirForm) {
  const Size n = Size::symbol("n");
  const Size m = Size::symbol("m");
  EXPECT_EQ((n + n).str(), "n + n");
  EXPECT_EQ((n + 1 + 1).str(), "n + 1 + 1");
  EXPECT_EQ(plus(n, m, 8).str(), "n + m + m + m + m + m + m + m + m");
}

TEST(Size, MultiplesOfOneSizeInLongSumsAreAdded) {
  const Size n = Size::symbol("n");
  const Size m = Size::symbol("m");
  const Size eight = plus(n, m, 8);
  EXPECT_EQ(plus(n, m, 1000).str(), "n + m + m + m + m + m + m + 994*m");
  EXPECT_EQ(plus(eight, Size(1), 1000).str(), eight.str() + " + 1000");
  EXPECT_EQ(plus(plus(eight, Size(1), 2), Size(-1), 2).str(), eight.str());
  EXPECT_EQ(plus(eight, 3 * n, 2).str(), eight.str() + " + 6*n");
  EXPECT_EQ((Size(1) + (eight + 1)).str(), eight.str() + " + 2");
  for (int count : {3, 9, 40, 1000}) {
    EXPECT_EQ(plus(n, m, count).evaluate(lookupIn({{"n", 7}, {"m", 11}})), 7 + 11 * count);
  }
  const Size most = Size(INT64_MAX) * eight;
  EXPECT_THROW((most + most).evaluate(lookupIn({{"n", 1}, {"m", 0}})), UserError);
}

// Concatenating a tensor with itself doubles the size.
TEST(Size, DoublingStaysSmall) {
  Size size = Size::symbol("n");
  for (int i = 0; i < 62; ++i) size = size + size;
  EXPECT_LT(size.str().size(), size_t{100});
  EXPECT_EQ(size.evaluate(lookupIn({{"n", 1}})), int64_t{1} << 62);
}

TEST(Size, DifferencesAndNegativeConstantsAreReported) {
  const Size n = Size::symbol("n");
  EXPECT_FALSE((2 * n + 1).hasDifference());
  EXPECT_TRUE((2 * (n - 1)).hasDifference());
  EXPECT_TRUE((n + (-1)).hasDifference());
  EXPECT_TRUE(Size::max(n, Size(-2)).hasDifference());
}

// FusionBuilder creates two kinds of sizes that users write in a shorter form: the extent of a
// broadcast axis whose operands have the sizes n? and m? (each may be 1 in a run), and a size of a
// reshape that may be -1 in a run.
TEST(Size, InternalSizesArePrintedAsTheUserWroteThem) {
  const Size n = Size::symbol("n"), m = Size::symbol("m"), k = Size::symbol("%k");
  const Size shared = Size::max(n, m) * Size::min(Size(1), Size::min(n, m));
  const Size open = Size::given(k, Size::floorDiv(n, m));
  EXPECT_EQ(writtenSize(shared + 1), "broadcast(n, m) + 1");
  EXPECT_EQ(writtenSize(2 * open), "2*%k");
  EXPECT_EQ(writtenSize(Size::max(n, m)), "max(n, m)");
  EXPECT_EQ(decidedSize(shared, {{"n", 1}, {"m", 4}}).str(), "m");
  EXPECT_EQ(decidedSize(shared, {{"n", 4}, {"m", 1}}).str(), "n");
  EXPECT_EQ(decidedSize(shared, {{"n", 0}, {"m", 1}}).str(), "n");
  EXPECT_EQ(decidedSize(open, {{"n", 8}, {"m", 2}, {"%k", -1}}).str(), "floordiv(n, m)");
  EXPECT_EQ(decidedSize(open, {{"n", 8}, {"m", 2}, {"%k", 3}}).str(), "%k");
}

// The guard compares an axis that is the result of a broadcast with another axis.
TEST(Size, GuardsNameTheExtentThatDecides) {
  const Size n = Size::symbol("n"), m = Size::symbol("m"), k = Size::symbol("k");
  const Size shared = Size::max(n, m) * Size::min(Size(1), Size::min(n, m));
  std::string message;
  try {
    checkGuards({{shared, k, "axis 0 of %a: f32[broadcast(n, m)] and of %z: f32[k]"}},
                {{"n", 1}, {"m", 4}, {"k", 3}},
                {{"n", "axis 0 of %x"}, {"m", "axis 1 of %y"}, {"k", "axis 0 of %z"}});
  } catch (const UserError& error) {
    message = error.what();
  }
  EXPECT_EQ(message,
            "axis 0 of %a: f32[broadcast(n, m)] and of %z: f32[k]: m = 4 and k = 3 must be equal "
            "(n = 1 is axis 0 of %x, m = 4 is axis 1 of %y)");
}

}  // namespace
}  // namespace heddle::size_test
