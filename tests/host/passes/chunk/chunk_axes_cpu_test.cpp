// Tests matrix products that are split into chunks along any axis of rows, together with their
// collectives. The results must equal those of the unsplit program.
// tests/text/host/chunk_collectives.txt tests which axes are split.
#include <gtest/gtest.h>

#include "host/compile.h"
#include "tests/host/passes/chunk/chunk_programs.h"

namespace heddle::host::chunk_axes_cpu_test {
namespace {

using chunk_testing::choiceOf;
using chunk_testing::compiled;
using chunk_testing::expectRight;
using chunk_testing::expectSameBits;
using chunk_testing::kSequenceParallel;
using chunk_testing::kTwoReaders;
using chunk_testing::posts;
using chunk_testing::replaced;
using comm::CollectiveKind;

// [batch, tokens, hidden]; input and output are sharded by tokens.
constexpr const char* kBatchedSequence = R"(heddle 1
mesh @m = [x=ranks]
fusion bsp(%x: f32[b, t, h] shard(@m, 1: x), %w1: f32[h, f] shard(@m, 1: x),
           %w2: f32[f, h] shard(@m, 0: x)) with b = 2, t = 12, h = 6, f = 96 {
  %a = matmul(%x, %w1)
  %g = relu(%a)
  %y = matmul(%g, %w2)
  return %y shard(@m, 1: x)
}
)";

// As above, but batches are also sharded, over the other axis of a mesh.
constexpr const char* kBatchesAndTokens = R"(heddle 1
mesh @m = [y=2, x=2]
fusion bgrid(%x: f32[b, t, h] shard(@m, 0: y, 1: x), %w1: f32[h, f] shard(@m, 1: x),
             %w2: f32[f, h] shard(@m, 0: x)) with b = 4, t = 12, h = 6, f = 96 {
  %a = matmul(%x, %w1)
  %g = relu(%a)
  %y = matmul(%g, %w2)
  return %y shard(@m, 0: y, 1: x)
}
)";

// [batch, tokens, hidden]; input and output are unsharded.
constexpr const char* kBatchedTensor = R"(heddle 1
mesh @m = [x=ranks]
fusion btp(%x: f32[b, t, h] shard(@m), %w1: f32[h, f] shard(@m, 1: x),
           %w2: f32[f, h] shard(@m, 0: x)) with b = 2, t = 12, h = 6, f = 96 {
  %a = matmul(%x, %w1)
  %g = relu(%a)
  %y = matmul(%g, %w2)
  return %y shard(@m)
}
)";

TEST(ChunkAxes, ChunkedTokensAreRightOnOneToFourRanks) {
  for (int64_t t : {0, 7, 12}) expectRight(kBatchedSequence, 3, 2, {{"t", t}});
  expectRight(kBatchedSequence, 2, 3, {});
  for (int64_t b : {3, 4}) expectRight(kBatchesAndTokens, 4, 3, {{"b", b}});
}

// The rows of a chunk may begin and end in the middle of a batch, because batches and tokens are
// contiguous in memory.
TEST(ChunkAxes, UnevenBatchesAreSplitWithTheirTokens) {
  for (int64_t b : {0, 1, 2}) expectRight(kBatchedTensor, 3, 3, {{"b", b}});
  expectRight(kBatchedTensor, 2, 5, {{"b", 1}, {"t", 10}});
  expectRight(kBatchedTensor, 2, 5, {{"b", 1}, {"t", 11}});
  for (int64_t b : {2, 4, 6}) expectRight(kTwoReaders, 2, 3, {{"b", b}});
  EXPECT_EQ(posts(choiceOf(compiled(parseFusion(kBatchedTensor), 2, 3)).then_body,
                  CollectiveKind::Allreduce),
            3);
}

TEST(ChunkAxes, ChunksKeepEveryBit) {
  for (const char* text : {kSequenceParallel, kBatchedSequence, kBatchedTensor}) {
    expectSameBits(text, 2, 3);
  }
}

TEST(ChunkAxes, StreamAnnotationSelectsTheAxis) {
  const std::string tokens = replaced(kBatchedSequence, "return %y shard(@m, 1: x)",
                                      "return %y shard(@m, 1: x) stream(1: 3)");
  const Program sp = compile(parseFusion(tokens), 2, {});
  EXPECT_EQ(posts(choiceOf(sp).then_body, CollectiveKind::ReduceScatter), 3);
  EXPECT_EQ(posts(choiceOf(sp).then_body, CollectiveKind::Allgather), 1);
  // stream(0: 2) splits batches. stream(1: 3) splits the tokens of a single batch.
  const std::string batches =
      replaced(kBatchedTensor, "return %y shard(@m)", "return %y shard(@m) stream(0: 2)");
  const std::string one =
      replaced(replaced(batches, "stream(0: 2)", "stream(1: 3)"), "b = 2", "b = 1");
  for (int64_t b : {1, 2}) {
    expectRight(batches.c_str(), 2, PassOptions::kAutoChunks, {{"b", b}});
    expectRight(one.c_str(), 2, PassOptions::kAutoChunks, {{"b", b}});
  }
  EXPECT_EQ(posts(choiceOf(compile(parseFusion(one), 2, {})).then_body, CollectiveKind::Allreduce),
            3);
}

// With the default sizes, the rows of %u do not divide into chunks. The matrix product of %x must
// be split nevertheless.
TEST(ChunkAxes, DivisibleRowsAreSplitBesideIndivisibleOnes) {
  constexpr const char* kTwo = R"(heddle 1
mesh @m = [x=ranks]
fusion two(%x: f32[t, h] shard(@m, 1: x), %u: f32[s, h] shard(@m, 1: x),
           %w: f32[h, f] shard(@m, 0: x)) with t = 24, s = 23, h = 6, f = 4 {
  %y = matmul(%x, %w)
  %z = matmul(%u, %w)
  return %y shard(@m), %z shard(@m)
}
)";
  const Fusion fusion = parseFusion(kTwo);
  const Program program = compiled(fusion, 2, 2);
  EXPECT_EQ(posts(choiceOf(program).then_body, CollectiveKind::Allreduce), 3) << print(program);
  for (int64_t t : {23, 24}) {
    for (int64_t s : {23, 24}) expectRight(kTwo, 2, 2, {{"t", t}, {"s", s}, {"h", 6}, {"f", 4}});
  }
}

}  // namespace
}  // namespace heddle::host::chunk_axes_cpu_test
