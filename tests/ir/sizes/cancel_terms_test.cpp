#include "ir/sizes/cancel_terms.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "ir/base/error.h"

namespace heddle::cancel_terms_test {
namespace {

const Size kN = Size::symbol("n");
const Size kI = Size::symbol("%i");

TEST(CancelTerms, TermsThatOccurWithBothSignsAreLeftOut) {
  EXPECT_EQ(cancelTerms((kI + 2) - (kI + 1)).str(), "1");
  EXPECT_EQ(cancelTerms((kN - kI) - (kN - 1 - kI)).str(), "1");
  EXPECT_EQ(cancelTerms(kN + 1 + Size(-1)).str(), "n");
  EXPECT_EQ(cancelTerms(2 * (kI + kN) - 2 * kI).str(), "2*n");
  EXPECT_EQ(cancelTerms(kI - kI * 3 + kN * kI + 2 * kI).str(), "n*%i");
  EXPECT_EQ(cancelTerms(Size::mod(kI, kN) + 1 - Size::mod(kI, kN)).str(), "1");
}

TEST(CancelTerms, SizesWithoutSuchTermsStayAsTheyAre) {
  for (const Size& size :
       {kN, kN - kI, kN - 3 - 3, Size::max(kI - Size::mod(kI, kN), kN), kI - kN + kI}) {
    EXPECT_EQ(cancelTerms(size), size);
  }
}

TEST(CancelTerms, TheValueStaysEqual) {
  for (const int64_t n : {0, 1, 7}) {
    for (const int64_t i : {-3, 0, 5}) {
      const auto value = [&](const Size& size) {
        return size.evaluate(
            [&](const std::string& symbol) { return std::optional(symbol == "n" ? n : i); });
      };
      for (const Size& size :
           {(kI + 2) - (kI + 1), kN - (kI - kN) - 2 * kN, (kI - 5) - (kI - kN)}) {
        EXPECT_EQ(value(cancelTerms(size)), value(size)) << size.str();
      }
    }
  }
}

TEST(CancelTerms, FactorsThatOverflowLeaveTheSizeAsItIs) {
  const Size large = INT64_MAX * kI;
  EXPECT_EQ(cancelTerms(large + kN + large - kN), large + kN + large - kN);
}

}  // namespace
}  // namespace heddle::cancel_terms_test
