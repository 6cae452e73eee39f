#include "ir/base/unique_names.h"

#include <gtest/gtest.h>

namespace heddle::unique_names_test {
namespace {

TEST(UniqueNames, NumbersBeginWithTheGivenOneAndSkipNamesInUse) {
  UniqueNames names(2);
  EXPECT_EQ(names.fresh("y"), "y");
  EXPECT_TRUE(names.add("y_3"));
  EXPECT_FALSE(names.add("y"));
  EXPECT_EQ(names.fresh("y"), "y_2");
  EXPECT_EQ(names.fresh("y"), "y_4");
  EXPECT_EQ(names.fresh("y_3"), "y_3_2");
  EXPECT_EQ(names.fresh("z"), "z");
  EXPECT_TRUE(names.contains("y_4"));
  EXPECT_FALSE(names.contains("y_5"));
}

TEST(UniqueNames, NameAddedBetweenTwoRequestsIsSkipped) {
  UniqueNames names(1);
  EXPECT_EQ(names.fresh("k"), "k");
  EXPECT_EQ(names.fresh("k"), "k_1");
  EXPECT_TRUE(names.add("k_2"));
  EXPECT_EQ(names.fresh("k"), "k_3");
}

// If each request tried the numbers 1, 2, 3, ... again, the test would need 45 billion attempts.
TEST(UniqueNames, ManyRequestsForOneNameEnd) {
  UniqueNames names(1);
  constexpr int kCount = 300000;
  std::string last;
  for (int i = 0; i <= kCount; ++i) last = names.fresh("x");
  EXPECT_EQ(last, "x_300000");
}

}  // namespace
}  // namespace heddle::unique_names_test
