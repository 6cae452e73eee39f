// Compares the predicted times of chunks with closed formulas, and tests the choice between numbers
// of chunks.
#include "host/passes/chunk/cost_model.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace heddle::host::cost_model_test {
namespace {

// The work that takes one millisecond at the rates of CostConstants: operations of matrix products,
// and bytes of communication.
constexpr double kFlopsOfAMs = 7.4e11, kBytesOfAMs = 3.5e8;

TEST(CostModel, PartialTilesCostAsFullTiles) {
  // Work of 130 rows and work of 256 rows both need two tiles.
  ChunkedWork work{7e11, 0, false, 1, false, 0, 256};
  const double full = chunkedSeconds(work, {1});
  work.rows = 130;
  work.flops *= 130.0 / 256;
  EXPECT_NEAR(chunkedSeconds(work, {1}), full, 1e-9);
}

TEST(CostModel, MoreChunksAreUsedOnlyWhereTheyPay) {
  const std::vector<ChunkShares> equal = {{1}, {1, 1}, {1, 1, 1, 1}};
  // No chunks: there is no matrix product that could hide communication, or it takes hardly longer
  // than a launch.
  EXPECT_EQ(cheapestShares({0, 1e9}, equal), ChunkShares{1});
  EXPECT_EQ(cheapestShares({7e9, 3.5e6}, equal), ChunkShares{1});
  const ChunkedWork gather{2 * kFlopsOfAMs, kBytesOfAMs};
  EXPECT_EQ(cheapestShares(gather, {{1}, {1, 1}}), (ChunkShares{1, 1}));
  EXPECT_NEAR(chunkedSeconds(gather, {1}), 3.0e-3, 5e-5);
  // The first half arrives after 0.5 ms. The second half arrives while the matrix product of the
  // first half runs. The copy slows this matrix product down.
  const double slowed = kBytesOfAMs / 3e12;
  EXPECT_NEAR(chunkedSeconds(gather, {1, 1}), 2.5e-3 + slowed, 5e-5);
  // If matrix products are long, the first chunk should be short, because no matrix product hides
  // its communication.
  const ChunkedWork slow{8 * kFlopsOfAMs, kBytesOfAMs};
  EXPECT_NEAR(chunkedSeconds(slow, {1, 1, 2}), 8.25e-3 + slowed, 5e-5);
  const ChunkShares growing = cheapestShares(slow, sharesFor(slow));
  EXPECT_LE(growing.front() * 4, unitsOf(growing));
  // The third chunk is copied within the GPU before it is sent. This copy cannot start before the
  // first matrix product has ended.
  const double copied = kBytesOfAMs / 2 / 2.2e8 * 1e-3;
  const ChunkedWork hurried{2 * kFlopsOfAMs, 2 * kBytesOfAMs};
  EXPECT_GT(chunkedSeconds(hurried, {1, 1, 2}), 0.5e-3 + 0.5e-3 + 2 * copied + 1e-3);
}

TEST(CostModel, MatmulsHideTheReduction) {
  ChunkedWork work{4 * kFlopsOfAMs, kBytesOfAMs, false, 1, true};
  // The matrix products take 4 ms. The sums of the collectives slow them down by 0.7 ms. Nothing
  // hides the communication of the last chunk.
  EXPECT_NEAR(chunkedSeconds(work, {3, 1}), 4.7e-3 + 0.25e-3, 1.2e-4);
  const ChunkShares shrinking = cheapestShares(work, sharesFor(work));
  EXPECT_LE(shrinking.back() * 4, unitsOf(shrinking));
  // If communication is slower than the matrix products, it determines the time from the first
  // chunk on.
  work.flops = kFlopsOfAMs / 4;
  EXPECT_GT(chunkedSeconds(work, {1, 1, 1, 1}), 0.75 * kBytesOfAMs / 3e11);
}

TEST(CostModel, SharesAddUpToAtMostSixteenUnits) {
  ChunkedWork gather{kFlopsOfAMs, kBytesOfAMs}, scatter = gather, both = gather, sum = gather;
  scatter.reduces = both.reduces = sum.reduces = sum.returns = true;
  both.gathered = kBytesOfAMs;
  sum.buffer = 256 << 20;
  for (const ChunkedWork& work : {gather, scatter, both, sum}) {
    EXPECT_EQ(sharesFor(work).front(), ChunkShares{1});
    for (const ChunkShares& shares : sharesFor(work)) {
      const int64_t units = unitsOf(shares);
      EXPECT_TRUE(units >= 1 && units <= 16 && (units & (units - 1)) == 0) << units;
      if (!work.returns || shares.size() == 1) continue;
      EXPECT_LE(4 * *std::max_element(shares.begin(), shares.end()), units);
    }
  }
}

}  // namespace
}  // namespace heddle::host::cost_model_test
