#include "host/device/cpu/part_grid.h"

#include <gtest/gtest.h>

namespace heddle::host::part_grid_test {
namespace {

using matmul::PartGrid;
using matmul::partGrid;

TEST(PartGrid, PartsCoverTheResultAndFitTheLimit) {
  for (const int64_t threads : {1, 2, 7, 16, 128}) {
    for (const int64_t m : {1, 15, 300, 2048, 4097, 1000003}) {
      for (const int64_t n : {1, 63, 64, 257, 4096, 50257}) {
        const PartGrid grid = partGrid(1, m, n, 64, threads);
        EXPECT_LE(grid.rows * grid.columns, PartGrid::kMostElements) << m << ' ' << n;
        EXPECT_GE(grid.rows * grid.row_parts, m);
        EXPECT_LT(grid.rows * (grid.row_parts - 1), m);
        EXPECT_GE(grid.columns * grid.column_parts, n);
        EXPECT_LT(grid.columns * (grid.column_parts - 1), n);
      }
    }
  }
}

TEST(PartGrid, LargeMatmulUsesAllThreads) {
  for (const int64_t threads : {2, 4, 8, 16}) {
    EXPECT_EQ(partGrid(1, 2048, 2048, 2048, threads).parts() % threads, 0) << threads;
  }
}

TEST(PartGrid, SmallMatmulsOfABatchAreNotSplit) {
  EXPECT_EQ(partGrid(64, 128, 128, 64, 8).parts(), 1);
  EXPECT_EQ(partGrid(1, 16, 64, 8, 8).parts(), 1);
}

}  // namespace
}  // namespace heddle::host::part_grid_test
