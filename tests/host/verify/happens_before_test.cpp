#include "host/verify/happens_before.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace heddle::host::happens_before_test {
namespace {

TEST(HappensBeforePostSet, AgreesWithASetOfNumbers) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    PostSet sets[2];
    std::set<int32_t> expected[2];
    for (int i = 0; i < 30; ++i) {
      const auto first = static_cast<int32_t>(random() % 60);
      const auto last = first + static_cast<int32_t>(random() % 4);
      sets[i % 2].add(first, last);
      for (int32_t post = first; post < last; ++post) expected[i % 2].insert(post);
    }
    PostSet all = sets[0], common = sets[0];
    all.join(sets[1]);
    common.meet(sets[1]);
    for (int32_t post = 0; post < 64; ++post) {
      const bool a = expected[0].count(post) > 0, b = expected[1].count(post) > 0;
      ASSERT_EQ(sets[0].has(post), a) << post;
      ASSERT_EQ(all.has(post), a || b) << post;
      ASSERT_EQ(common.has(post), a && b) << post;
    }
  }
}

}  // namespace
}  // namespace heddle::host::happens_before_test
