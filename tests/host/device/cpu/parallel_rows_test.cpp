#include "host/device/cpu/parallel_rows.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <vector>

namespace heddle::host::parallel_rows_test {
namespace {

TEST(ParallelRows, EveryRowIsVisitedOnce) {
  TilePool pool(3);
  for (const int64_t rows : {0, 1, 2, 16, 4097}) {
    for (const int64_t cost : {0, 1, 100, 1 << 20}) {
      SCOPED_TRACE(::testing::Message() << rows << " rows of cost " << cost);
      std::vector<std::atomic<int>> visits(static_cast<size_t>(rows));
      forRows(pool, rows, cost, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
      });
      for (const auto& count : visits) ASSERT_EQ(count, 1);
    }
  }
}

TEST(ParallelRows, CheapRowsFormOneRange) {
  TilePool pool(3);
  std::mutex mutex;
  std::set<std::pair<int64_t, int64_t>> ranges;
  forRows(pool, 100, 10, [&](int64_t begin, int64_t end) {
    std::lock_guard lock(mutex);
    ranges.insert({begin, end});
  });
  EXPECT_EQ(ranges, (std::set<std::pair<int64_t, int64_t>>{{0, 100}}));
}

}  // namespace
}  // namespace heddle::host::parallel_rows_test
