#include "ir/reference/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace heddle::parallel_test {
namespace {

TEST(Parallel, EachIndexIsVisitedOnce) {
  std::vector<std::atomic<int>> visits(1000);
  inParallel(1000, 7, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
  });
  for (const std::atomic<int>& count : visits) EXPECT_EQ(count.load(), 1);
}

TEST(Parallel, ExceptionOfAPartReachesTheCaller) {
  for (const int64_t bad : {0, 500, 999}) {
    const auto task = [&](int64_t begin, int64_t end) {
      if (begin <= bad && bad < end) throw std::runtime_error("bad");
    };
    EXPECT_THROW(inParallel(1000, 1, task), std::runtime_error) << bad;
  }
}

}  // namespace
}  // namespace heddle::parallel_test
