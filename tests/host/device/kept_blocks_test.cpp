#include "host/device/kept_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace heddle::host::kept_blocks_test {
namespace {

constexpr uint64_t kStream = 1;
constexpr uint64_t kOther = 2;

int memory[4];  // only the addresses are used

TEST(KeptBlocks, AllocationOfSimilarSizeOnTheSameStreamReusesABlock) {
  KeptBlocks kept;
  ASSERT_TRUE(kept.keep(&memory[0], 100, kStream));
  EXPECT_EQ(kept.take(100, kOther), nullptr);
  EXPECT_EQ(kept.take(513, kStream), nullptr);
  EXPECT_EQ(kept.take(512, kStream), &memory[0]);
  EXPECT_EQ(kept.take(512, kStream), nullptr);
}

TEST(KeptBlocks, NewestBlockIsReusedFirst) {
  KeptBlocks kept;
  ASSERT_TRUE(kept.keep(&memory[0], 512, kStream));
  ASSERT_TRUE(kept.keep(&memory[1], 512, kStream));
  EXPECT_EQ(kept.take(512, kStream), &memory[1]);
  EXPECT_EQ(kept.take(512, kStream), &memory[0]);
}

TEST(KeptBlocks, LargeBlocksAreNotKept) {
  KeptBlocks kept;
  EXPECT_FALSE(kept.keep(&memory[0], KeptBlocks::kMostBytes + 1, kStream));
  EXPECT_EQ(kept.heldBytes(), 0);
}

TEST(KeptBlocks, TotalSizeIsLimited) {
  KeptBlocks kept;
  const int64_t fitting = KeptBlocks::kMostTotal / KeptBlocks::kMostBytes;
  for (int64_t i = 0; i < fitting; ++i) {
    ASSERT_TRUE(kept.keep(&memory[0], KeptBlocks::kMostBytes, kStream));
  }
  EXPECT_FALSE(kept.keep(&memory[1], 1, kStream));
  EXPECT_EQ(kept.heldBytes(), KeptBlocks::kMostTotal);
  kept.take(KeptBlocks::kMostBytes, kStream);
  EXPECT_TRUE(kept.keep(&memory[1], 1, kStream));
}

TEST(KeptBlocks, DropGivesUpTheBlocksOfOneStream) {
  KeptBlocks kept;
  ASSERT_TRUE(kept.keep(&memory[0], 1, kStream));
  ASSERT_TRUE(kept.keep(&memory[1], 1000, kStream));
  ASSERT_TRUE(kept.keep(&memory[2], 1, kOther));
  std::vector<void*> dropped = kept.drop(kStream);
  std::sort(dropped.begin(), dropped.end());
  EXPECT_EQ(dropped, (std::vector<void*>{&memory[0], &memory[1]}));
  EXPECT_EQ(kept.heldBytes(), 512);
  EXPECT_EQ(kept.dropAll(), (std::vector<void*>{&memory[2]}));
  EXPECT_EQ(kept.heldBytes(), 0);
}

}  // namespace
}  // namespace heddle::host::kept_blocks_test
