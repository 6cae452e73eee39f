#include "ir/base/edit_distance.h"

#include <gtest/gtest.h>

namespace heddle::edit_distance_test {
namespace {

const std::vector<std::string_view> kNames = {"pad", "add", "softmax", "relu", "permute", "or"};

TEST(EditDistance, OnlyCloseNamesAreSuggested) {
  EXPECT_EQ(suggestionFor("sofmax", kNames), "; the nearest name is 'softmax'");
  EXPECT_EQ(suggestionFor("rellu", kNames), "; the nearest name is 'relu'");
  EXPECT_EQ(suggestionFor("addd", kNames), "; the nearest name is 'add'");
  EXPECT_EQ(suggestionFor("permutation", kNames), "");
  EXPECT_EQ(suggestionFor("gcd", kNames), "");
  EXPECT_EQ(suggestionFor("x", kNames), "");
  EXPECT_EQ(suggestionFor(std::string(1'000'000, 'a'), kNames), "");
}

}  // namespace
}  // namespace heddle::edit_distance_test
