// What chunks cost by the model, in closed form, and which are taken.
#include <gtest/gtest.h>

#include <algorithm>

#include "host/passes/chunk/cost_model.h"

namespace heddle::host::chunk_cost_test {
namespace {

// What takes a millisecond at the nominal rates.
constexpr double kFlopsOfAMs = 7.4e11, kBytesOfAMs = 3.5e8;

TEST(ChunkCostModel, PartialTilesCostAsFullTiles) {
  // 130 rows are two tiles, 256 as well.
  ChunkedWork work{7e11, 0, false, 1, false, 0, 256};
  const double full = chunkedSeconds(work, {1});
  work.rows = 130;
  work.flops *= 130.0 / 256;
  EXPECT_NEAR(chunkedSeconds(work, {1}), full, 1e-9);
}

TEST(ChunkCostModel, MoreChunksAreUsedOnlyWhereTheyPay) {
  const std::vector<ChunkShares> equal = {{1}, {1, 1}, {1, 1, 1, 1}};
  // Nothing to hide, or hardly more than a launch: one chunk.
  EXPECT_EQ(cheapestShares({0, 1e9}, equal), ChunkShares{1});
  EXPECT_EQ(cheapestShares({7e9, 3.5e6}, equal), ChunkShares{1});
  const ChunkedWork gather{2 * kFlopsOfAMs, kBytesOfAMs};
  EXPECT_EQ(cheapestShares(gather, {{1}, {1, 1}}), (ChunkShares{1, 1}));
  EXPECT_NEAR(chunkedSeconds(gather, {1}), 3.0e-3, 5e-5);
  // 0.5 ms until the first half is there, and the second comes beside its product and slows it by
  // what is copied.
  const double slowed = kBytesOfAMs / 3e12;
  EXPECT_NEAR(chunkedSeconds(gather, {1, 1}), 2.5e-3 + slowed, 5e-5);
  // What comes alone should be small, where products are long.
  const ChunkedWork slow{8 * kFlopsOfAMs, kBytesOfAMs};
  EXPECT_NEAR(chunkedSeconds(slow, {1, 1, 2}), 8.25e-3 + slowed, 5e-5);
  const ChunkShares growing = cheapestShares(slow, sharesFor(slow));
  EXPECT_LE(growing.front() * 4, unitsOf(growing));
  // The third is copied on this GPU before it is sent, when the product of the first is over.
  const double copied = kBytesOfAMs / 2 / 2.2e8 * 1e-3;
  const ChunkedWork hurried{2 * kFlopsOfAMs, 2 * kBytesOfAMs};
  EXPECT_GT(chunkedSeconds(hurried, {1, 1, 2}), 0.5e-3 + 0.5e-3 + 2 * copied + 1e-3);
}

TEST(ChunkCostModel, MatmulsHideTheReduction) {
  ChunkedWork work{4 * kFlopsOfAMs, kBytesOfAMs, false, 1, true};
  // 4 ms of products, slowed by 0.7 ms of sums, and the last chunk alone.
  EXPECT_NEAR(chunkedSeconds(work, {3, 1}), 4.7e-3 + 0.25e-3, 1.2e-4);
  const ChunkShares shrinking = cheapestShares(work, sharesFor(work));
  EXPECT_LE(shrinking.back() * 4, unitsOf(shrinking));
  // A wire that is slower than the products is the whole time, from the first chunk on.
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
