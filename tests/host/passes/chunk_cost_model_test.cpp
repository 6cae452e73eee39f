// The predicted times of chunks, compared with closed forms, and the choice between them.
#include <gtest/gtest.h>

#include <algorithm>

#include "host/passes/chunk/cost_model.h"

namespace heddle::host::chunk_cost_test {
namespace {

// The work that takes a millisecond at the rates of CostConstants.
constexpr double kFlopsOfAMs = 7.4e11, kBytesOfAMs = 3.5e8;

TEST(ChunkCostModel, PartialTilesCostAsFullTiles) {
  // Both 130 and 256 rows need two tiles.
  ChunkedWork work{7e11, 0, false, 1, false, 0, 256};
  const double full = chunkedSeconds(work, {1});
  work.rows = 130;
  work.flops *= 130.0 / 256;
  EXPECT_NEAR(chunkedSeconds(work, {1}), full, 1e-9);
}

TEST(ChunkCostModel, MoreChunksAreUsedOnlyWhereTheyPay) {
  const std::vector<ChunkShares> equal = {{1}, {1, 1}, {1, 1, 1, 1}};
  // There is nothing to hide, or hardly more than the cost of a launch.
  EXPECT_EQ(cheapestShares({0, 1e9}, equal), ChunkShares{1});
  EXPECT_EQ(cheapestShares({7e9, 3.5e6}, equal), ChunkShares{1});
  const ChunkedWork gather{2 * kFlopsOfAMs, kBytesOfAMs};
  EXPECT_EQ(cheapestShares(gather, {{1}, {1, 1}}), (ChunkShares{1, 1}));
  EXPECT_NEAR(chunkedSeconds(gather, {1}), 3.0e-3, 5e-5);
  // The first half arrives after 0.5 ms. The second half arrives beside the matrix product of the
  // first, which its copy slows down.
  const double slowed = kBytesOfAMs / 3e12;
  EXPECT_NEAR(chunkedSeconds(gather, {1, 1}), 2.5e-3 + slowed, 5e-5);
  // If matrix products are long, the first chunk should be short, because nothing hides it.
  const ChunkedWork slow{8 * kFlopsOfAMs, kBytesOfAMs};
  EXPECT_NEAR(chunkedSeconds(slow, {1, 1, 2}), 8.25e-3 + slowed, 5e-5);
  const ChunkShares growing = cheapestShares(slow, sharesFor(slow));
  EXPECT_LE(growing.front() * 4, unitsOf(growing));
  // The third chunk is copied within the GPU before it is sent. This waits for the end of the first
  // matrix product.
  const double copied = kBytesOfAMs / 2 / 2.2e8 * 1e-3;
  const ChunkedWork hurried{2 * kFlopsOfAMs, 2 * kBytesOfAMs};
  EXPECT_GT(chunkedSeconds(hurried, {1, 1, 2}), 0.5e-3 + 0.5e-3 + 2 * copied + 1e-3);
}

TEST(ChunkCostModel, MatmulsHideTheReduction) {
  ChunkedWork work{4 * kFlopsOfAMs, kBytesOfAMs, false, 1, true};
  // 4 ms of matrix products, 0.7 ms that the sums add to them, and the last chunk alone.
  EXPECT_NEAR(chunkedSeconds(work, {3, 1}), 4.7e-3 + 0.25e-3, 1.2e-4);
  const ChunkShares shrinking = cheapestShares(work, sharesFor(work));
  EXPECT_LE(shrinking.back() * 4, unitsOf(shrinking));
  // If the links are slower than the matrix products, they determine the time from the first chunk
  // on.
  work.flops = kFlopsOfAMs / 4;
  EXPECT_GT(chunkedSeconds(work, {1, 1, 1, 1}), 0.75 * kBytesOfAMs / 3e11);
}

TEST(ChunkCostModel, SharesAddUpToAtMostSixteenUnits) {
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
}  // namespace heddle::host::chunk_cost_test
