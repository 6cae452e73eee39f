// Compares the results of matrix products and collectives in chunks with those of the unsplit
// program. The sizes divide or do not divide into chunks. The programs run on one to four ranks,
// under adversarial orders of the streams.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "host/compile.h"
#include "host/passes/pipeline.h"
#include "host/program/visit.h"
#include "host/text/program_text.h"
#include "ir/base/error.h"
#include "ir/text/fusion_text.h"
#include "tests/host/passes/chunk/chunk_programs.h"
#include "tests/sanitized.h"

namespace heddle::host::chunk_collectives_cpu_test {
namespace {

using chunk_testing::choiceOf;
using chunk_testing::compiled;
using chunk_testing::expectRight;
using chunk_testing::expectSameBits;
using chunk_testing::kSequenceParallel;
using chunk_testing::kTensorParallel;
using chunk_testing::kTwoAxes;
using chunk_testing::kTwoReaders;
using chunk_testing::posts;
using chunk_testing::replaced;
using comm::CollectiveKind;
using testing::HarnessOptions;

// Two operands are gathered by one instruction, and three gradients are reduced by another one.
TEST(ChunkCollectives, CoalescedGathersAndGradientsAreRight) {
  constexpr const char* kGradients = R"(heddle 1
mesh @m = [x=ranks]
fusion gradients(%x: f32[t, h] shard(@m, 0: x), %k: f32[f, h] shard(@m, 0: x),
                 %v: f32[h, f] shard(@m, 0: x), %q: f32[s, h] shard(@m))
    with t = 12, h = 12, f = 24, s = 5 {
  %k_all = set(%k) shard(@m)
  %v_all = set(%v) shard(@m)
  %kt = permute(%k_all, axes=[1, 0])
  %scores = matmul(%q, %kt)
  %p = relu(%scores)
  %vt = permute(%v_all, axes=[1, 0])
  %o = matmul(%p, %vt)
  %xt = permute(%x, axes=[1, 0])
  %dw = matmul(%xt, %x)
  %db = sum(%x, axes=[0])
  %e = exp(%x)
  %dc = sum(%e, axes=[0])
  return %o shard(@m), %dw shard(@m), %db shard(@m), %dc shard(@m)
}
)";
  for (int ranks : {1, 2, 3, 4}) {
    for (int64_t t : {0, 7, 12}) expectRight(kGradients, ranks, 1, {{"t", t}});
  }
  const Program program = compiled(parseFusion(kGradients), 4, 1);
  EXPECT_EQ(posts(program.body, CollectiveKind::Allgather), 1) << print(program);
  EXPECT_EQ(posts(program.body, CollectiveKind::Allreduce), 1) << print(program);
}

TEST(ChunkCollectives, ChunkedAllgatherAndReduceScatterAreRight) {
  for (int ranks : {1, 2, 3, 4}) {
    for (int64_t t : {0, 7, 24}) expectRight(kSequenceParallel, ranks, 2, {{"t", t}});
  }
  expectRight(kSequenceParallel, 2, 6, {});
  expectRight(kSequenceParallel, 2, 4, {{"f", 97}});
}

TEST(ChunkCollectives, ChunkedAllreduceIsRight) {
  for (int ranks : {1, 2, 3, 4}) {
    for (int64_t t : {0, 7, 24}) expectRight(kTensorParallel, ranks, 3, {{"t", t}});
  }
}

TEST(ChunkCollectives, SeveralReadersAndMeshAxesAreRight) {
  for (int ranks : {2, 3}) {
    for (int64_t b : {0, 5, 12}) expectRight(kTwoReaders, ranks, 2, {{"b", b}});
  }
  for (int64_t t : {0, 8, 24}) expectRight(kTwoAxes, 4, 3, {{"t", t}});
}

// Returns one letter per instruction:
// - g: post of a gather; s: post of a reduction
// - p: matrix product; k: kernel
// - w: wait of stream 0
std::string orderOf(const Program& program) {
  std::string order;
  for (const Instruction& x : choiceOf(program).then_body) {
    const auto* post = std::get_if<Communicate>(&x.op);
    if (post != nullptr) order += post->kind == CollectiveKind::Allgather ? 'g' : 's';
    if (std::holds_alternative<CallLibrary>(x.op)) order += 'p';
    if (std::holds_alternative<LaunchKernel>(x.op)) order += 'k';
    if (const auto* wait = std::get_if<Wait>(&x.op);
        wait != nullptr && wait->stream == kCallerStream) {
      order += 'w';
    }
  }
  return order;
}

// The matrix products of a chunk run before the wait for the next chunk.
TEST(ChunkCollectives, MatmulsRunBetweenTheWaits) {
  const Program chain = compiled(parseFusion(kSequenceParallel), 2, 3);
  EXPECT_EQ(orderOf(chain), "gggwppswppswppswww") << print(chain);
  std::string text = replaced(kSequenceParallel, "%x: f32[t, h] shard(@m, 0: x)",
                              "%x: f32[t, h] shard(@m, 0: x) stream(0: 3)");
  text = replaced(text, "return %y shard(@m, 0: x)", "return %y shard(@m, 0: x) stream(0: 3)");
  const Program apart = compile(parseFusion(text), 2, {});
  EXPECT_EQ(orderOf(apart), "gggwpwpwppspspswww") << print(apart);
}

// A kernel between two matrix products is split together with them, even if it reads two matrix
// products.
TEST(ChunkCollectives, KernelBetweenTwoMatmulsIsChunkedWithThem) {
  const std::string gelu = replaced(kTensorParallel, "relu(%a)", "tanh(%a)");
  EXPECT_EQ(orderOf(compiled(parseFusion(gelu), 2, 2)), "pkpspkpsww");
  const std::string gated = replaced(
      replaced(gelu, "%g = tanh(%a)", "%u = matmul(%x, %w3)\n  %s = tanh(%a)\n  %g = mul(%s, %u)"),
      "%w2: f32[f, h] shard(@m, 0: x)",
      "%w2: f32[f, h] shard(@m, 0: x), %w3: f32[h, f] shard(@m, 1: x)");
  EXPECT_EQ(orderOf(compiled(parseFusion(gated), 2, 2)), "ppkpsppkpsww");
  std::string scattered = gated;
  while (scattered.find("[t, h] shard(@m)") != std::string::npos)
    scattered = replaced(scattered, "[t, h] shard(@m)", "[t, h] shard(@m, 0: x)");
  scattered = replaced(scattered, "return %y shard(@m)", "return %y shard(@m, 0: x)");
  EXPECT_EQ(orderOf(compiled(parseFusion(scattered), 2, 2)), "ggwppkpswppkpsww");
  int number = 0;
  for (const std::string& text : {gelu, gated, scattered}) {
    for (int ranks : {1, 2, 3, 4}) {
      for (int64_t t : {0, 7, 24}) {
        if (number++ % heddle::testing::kOneIn != 0) continue;
        expectRight(text.c_str(), ranks, 3, {{"t", t}});
      }
    }
    expectSameBits(replaced(text, "tanh(%a)", "neg(%a)"), 2, 3);
  }
}

// A tensor that is both operands of a matrix product must not be split.
TEST(ChunkCollectives, SelfMatmulIsNotSplit) {
  constexpr const char* kGram = R"(heddle 1
mesh @m = [x=ranks]
fusion gram(%x: f32[t, h] shard(@m), %w: f32[h, f] shard(@m, 1: x)) with t = 24, h = 6, f = 96 {
  %a = matmul(%x, %w)
  %g = tanh(%a)
  %y = linear(%g, %g)
  return %y shard(@m)
}
)";
  EXPECT_EQ(orderOf(compiled(parseFusion(kGram), 2, 2)), "pkpspsww");
  for (int ranks : {2, 3}) expectRight(kGram, ranks, 2, {});
}

// If something else reads the result of the first matrix product, the first matrix product is not
// split.
TEST(ChunkCollectives, ProducerWithOtherReadersStaysUnsplit) {
  const std::string seen =
      replaced(replaced(kTensorParallel, "relu(%a)", "tanh(%a)"), "return %y shard(@m)",
               "return %y shard(@m), %g shard(@m, 1: x)");
  EXPECT_EQ(orderOf(compiled(parseFusion(seen), 2, 2)), "pkpspsww");
  expectRight(seen.c_str(), 2, 2, {});
}

TEST(ChunkCollectives, StreamAnnotationRequestsChunks) {
  const std::string asks = replaced(kSequenceParallel, "return %y shard(@m, 0: x)",
                                    "return %y shard(@m, 0: x) stream(0: 3)");
  const Program program = compile(parseFusion(asks), 2, {});
  EXPECT_EQ(posts(choiceOf(program).then_body, CollectiveKind::ReduceScatter), 3);
  EXPECT_EQ(posts(choiceOf(program).then_body, CollectiveKind::Allgather), 1);
  EXPECT_EQ(print(program).find("stream("), std::string::npos);
  for (int64_t t : {0, 7, 24}) expectRight(asks.c_str(), 2, PassOptions::kAutoChunks, {{"t", t}});
  // On one rank there is no communication to overlap. This is not an error.
  expectRight(asks.c_str(), 1, PassOptions::kAutoChunks, {});
}

// With these default sizes, rows do not divide into chunks. The fusion must compile nevertheless.
TEST(ChunkCollectives, IndivisibleDefaultSizesCompile) {
  for (const char* t : {"t = 23", "t = 1", "t = 7"}) {
    const std::string text = replaced(kSequenceParallel, "t = 24", t);
    expectRight(text.c_str(), 2, 2, {});
    expectRight(text.c_str(), 2, 2, {{"t", 24}});
  }
}

bool hasUnequalChunks(const Program& program) {
  std::set<std::string> rows;
  forEachInstruction(choiceOf(program).then_body, [&](const Instruction& x, InstructionIndex) {
    const auto* post = std::get_if<Communicate>(&x.op);
    if (post == nullptr) return;
    for (const Size& size : program.slots[post->in].tensor.sizes()) {
      rows.insert(size.str());
    }
  });
  return rows.size() > 3;  // more sizes than rows, columns and one number of rows per chunk
}

// With large sizes, chunks have different numbers of rows.
TEST(ChunkCollectives, UnequalChunksAreRight) {
  int unequal = 0;
  constexpr const char* kSizes = "with t = 24, h = 6, f = 96";
  for (const char* of : {kSequenceParallel, kTensorParallel}) {
    const std::string text =
        replaced(replaced(of, "relu(%a)", "tanh(%a)"), kSizes, "with t = 64, h = 6, f = 96");
    for (int ranks : {2, 4}) {
      CompileOptions options;
      options.passes.chunk_sizes = {{"t", 8192}, {"h", 4096}, {"f", 1024}};
      const Fusion fusion = parseFusion(text);
      const Program program = compile(fusion, ranks, options);
      unequal += hasUnequalChunks(program) ? 1 : 0;
      HarnessOptions harness;
      harness.ranks = ranks;
      for (int64_t t : {0, 7, 64, 128}) {
        harness.sizes = {{"t", t}, {"h", 6}, {"f", 96}};
        for (uint64_t seed : {3, 0}) {
          if (seed == 0 && heddle::testing::kSanitized) continue;
          if (seed > 0) harness.cpu.adversarial_seed = seed;
          const auto got = testing::runProgram(program, harness);
          const auto expected = testing::expectedOf(fusion, harness);
          EXPECT_LT(testing::relativeError(got.at(0), expected.at(0)), 1e-5) << ranks << " " << t;
        }
      }
    }
  }
  EXPECT_GE(unequal, 2);
}

}  // namespace
}  // namespace heddle::host::chunk_collectives_cpu_test
