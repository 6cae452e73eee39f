// Products next to collectives in chunks: the same results as the whole, at sizes that fit and that
// do not, on any number of ranks, under adversarial orders.
#include <gtest/gtest.h>

#include <algorithm>

#include "host/lower.h"
#include "host/passes/chunk_collectives.h"
#include "host/passes/chunk_cost.h"
#include "host/text.h"
#include "host/visit.h"
#include "ir/error.h"
#include "ir/passes.h"
#include "ir/segment.h"
#include "ir/text.h"
#include "tests/host/rank_harness.h"

namespace heddle::host {
namespace {

using comm::CollectiveKind;
using testing::HarnessOptions;

// Rows spread at both ends: allgather -> product and product -> reduce-scatter.
constexpr const char* kSequenceParallel = R"(heddle 1
mesh @m = [x=ranks]
fusion sp(%x: f32[t, h] shard(@m, 0: x), %w1: f32[h, f] shard(@m, 1: x),
          %w2: f32[f, h] shard(@m, 0: x)) with t = 24, h = 6, f = 96 {
  %a = matmul(%x, %w1)
  %g = relu(%a)
  %y = matmul(%g, %w2)
  return %y shard(@m, 0: x)
}
)";

// Rows whole at both ends: product -> allreduce.
constexpr const char* kTensorParallel = R"(heddle 1
mesh @m = [x=ranks]
fusion tp(%x: f32[t, h] shard(@m), %w1: f32[h, f] shard(@m, 1: x),
          %w2: f32[f, h] shard(@m, 0: x)) with t = 24, h = 6, f = 96 {
  %a = matmul(%x, %w1)
  %g = relu(%a)
  %y = matmul(%g, %w2)
  return %y shard(@m)
}
)";

// Three axes, one gathered tensor read by two products, a bias.
constexpr const char* kTwoReaders = R"(heddle 1
mesh @m = [x=ranks]
fusion two(%x: f32[b, t, h] shard(@m, 0: x), %w1: f32[f, h] shard(@m, 0: x),
           %w2: f32[f, h] shard(@m, 0: x), %bias: f32[f] shard(@m, 0: x))
    with b = 12, t = 3, h = 6, f = 144 {
  %g = set(%x) shard(@m)
  %p = linear(%g, %w1, %bias)
  %q = linear(%g, %w2)
  return %p shard(@m, 2: x), %q shard(@m, 2: x)
}
)";

// Both axes of a mesh at once.
constexpr const char* kTwoAxes = R"(heddle 1
mesh @m = [y=2, x=2]
fusion grid(%x: f32[t, h] shard(@m, 0: [y, x]), %w1: f32[h, f] shard(@m, 1: x),
            %w2: f32[f, h] shard(@m, 0: x)) with t = 24, h = 6, f = 96 {
  %a = matmul(%x, %w1)
  %g = relu(%a)
  %y = matmul(%g, %w2)
  return %y shard(@m, 0: [y, x])
}
)";

// [batch, tokens, hidden], tokens spread at both ends.
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

// Batches too, over the other axis of a mesh.
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

// [batch, tokens, hidden] whole at both ends.
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

Program compiled(const Fusion& fusion, int ranks, int64_t chunks) {
  CompileOptions options;
  options.passes.chunks = chunks;
  return compile(fusion, ranks, options);
}

int posts(const std::vector<Instruction>& body, CollectiveKind kind) {
  int count = 0;
  forEachInstruction(body, [&](const Instruction& x, InstructionIndex) {
    const auto* post = std::get_if<Communicate>(&x.op);
    if (post != nullptr && post->kind == kind) ++count;
  });
  return count;
}

const If& choiceOf(const Program& program) {
  HEDDLE_USER_CHECK(program.body.size() == 1, "the program is no choice: {}", print(program));
  return std::get<If>(program.body.front().op);
}

void expectRight(const char* text, int ranks, int64_t chunks, const SizeBindings& sizes) {
  const Fusion fusion = parseFusion(text);
  const Program program = parseProgram(print(compiled(fusion, ranks, chunks)));
  HarnessOptions options;
  options.ranks = ranks;
  for (const auto& [symbol, value] : fusion.size_defaults) options.sizes[symbol] = value;
  for (const auto& [symbol, value] : sizes) options.sizes[symbol] = value;
  const auto expected = testing::expectedOf(fusion, options);
  for (uint64_t seed = 0; seed < 3; ++seed) {
    if (seed > 0) options.cpu.adversarial_seed = seed;
    const auto got = testing::runProgram(program, options);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_LT(testing::relativeError(got[i], expected[i]), 1e-5)
          << fusion.name << " on " << ranks << " ranks, " << chunks << " chunks, output " << i;
    }
  }
}

// Of integers, which a product of fewer rows sums to the same bits: a library may round f32 sums
// in another order at its edges.
void expectSameBits(std::string text, int ranks, int64_t chunks) {
  for (size_t at = 0; (at = text.find("f32[", at)) != std::string::npos;) text[at] = 'i';
  const Fusion fusion = parseFusion(text);
  HarnessOptions options;
  options.ranks = ranks;
  for (const auto& [symbol, value] : fusion.size_defaults) options.sizes[symbol] = value;
  CompileOptions off;
  off.passes.overlap = false;
  const auto whole = testing::runProgram(compile(fusion, ranks, off), options);
  options.cpu.adversarial_seed = 5;
  const auto parts = testing::runProgram(compiled(fusion, ranks, chunks), options);
  ASSERT_EQ(whole.size(), parts.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    ASSERT_EQ(whole[i].numel(), parts[i].numel());
    for (int64_t j = 0; j < whole[i].numel(); ++j) {
      ASSERT_EQ(whole[i].at(j), parts[i].at(j)) << fusion.name << ", element " << j;
    }
  }
}

// Two gathered operands and three gradients: five collectives of two kinds, in two posts.
TEST(CoalesceCollectives, GathersAndGradientsOnOneToFourRanks) {
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

TEST(ChunkCollectives, AllgatherAndReduceScatterOnOneToFourRanks) {
  for (int ranks : {1, 2, 3, 4}) {
    for (int64_t t : {0, 7, 24}) expectRight(kSequenceParallel, ranks, 2, {{"t", t}});
  }
  expectRight(kSequenceParallel, 2, 6, {});
  expectRight(kSequenceParallel, 2, 4, {{"f", 97}});
}

TEST(ChunkCollectives, AllreduceOnOneToFourRanks) {
  for (int ranks : {1, 2, 3, 4}) {
    for (int64_t t : {0, 7, 24}) expectRight(kTensorParallel, ranks, 3, {{"t", t}});
  }
}

TEST(ChunkCollectives, SeveralReadersAxesAndMeshAxes) {
  for (int ranks : {2, 3}) {
    for (int64_t b : {0, 5, 12}) expectRight(kTwoReaders, ranks, 2, {{"b", b}});
  }
  for (int64_t t : {0, 8, 24}) expectRight(kTwoAxes, 4, 3, {{"t", t}});
}

TEST(ChunkCollectives, TokensOfBatchesOnOneToFourRanks) {
  for (int64_t t : {0, 7, 12}) expectRight(kBatchedSequence, 3, 2, {{"t", t}});
  expectRight(kBatchedSequence, 2, 3, {});
  expectRight(kBatchedSequence, 3, 4, {{"b", 1}});
  for (int64_t b : {3, 4}) expectRight(kBatchesAndTokens, 4, 3, {{"b", b}});
}

// Batches and tokens lie behind each other: three chunks of two batches, five of one.
TEST(ChunkCollectives, BatchesThatDoNotDivideAreCutTogetherWithTheirTokens) {
  for (int64_t b : {0, 1, 2}) expectRight(kBatchedTensor, 3, 3, {{"b", b}});
  expectRight(kBatchedTensor, 2, 5, {{"b", 1}, {"t", 10}});
  expectRight(kBatchedTensor, 2, 5, {{"b", 1}, {"t", 11}});
  for (int64_t b : {2, 4, 6}) expectRight(kTwoReaders, 2, 3, {{"b", b}});
  EXPECT_EQ(posts(choiceOf(compiled(parseFusion(kBatchedTensor), 2, 3)).then_body,
                  CollectiveKind::Allreduce),
            3);
}

TEST(ChunkCollectives, ChunksChangeNoBit) {
  for (const char* text : {kSequenceParallel, kTensorParallel, kBatchedSequence, kBatchedTensor}) {
    for (int64_t chunks : {2, 3}) expectSameBits(text, 2, chunks);
  }
  expectSameBits(kBatchesAndTokens, 4, 3);
}

TEST(ChunkCollectives, TheChunksAreThere) {
  for (int64_t chunks : {2, 3, 6}) {
    const Program sp = compiled(parseFusion(kSequenceParallel), 2, chunks);
    const If& choice = choiceOf(sp);
    EXPECT_EQ(posts(choice.then_body, CollectiveKind::Allgather), chunks);
    EXPECT_EQ(posts(choice.then_body, CollectiveKind::ReduceScatter), chunks);
    EXPECT_EQ(posts(choice.else_body, CollectiveKind::Allgather), 1);
    EXPECT_EQ(posts(choice.else_body, CollectiveKind::ReduceScatter), 1);
    const Program tp = compiled(parseFusion(kTensorParallel), 2, chunks);
    EXPECT_EQ(posts(choiceOf(tp).then_body, CollectiveKind::Allreduce), chunks);
    const Program batched = compiled(parseFusion(kBatchedSequence), 2, chunks);
    EXPECT_EQ(posts(choiceOf(batched).then_body, CollectiveKind::Allgather), chunks);
    EXPECT_EQ(posts(choiceOf(batched).then_body, CollectiveKind::ReduceScatter), chunks);
    const Program two = compiled(parseFusion(kTwoReaders), 2, chunks);
    EXPECT_EQ(posts(choiceOf(two).then_body, CollectiveKind::Allgather), chunks);
  }
}

// Between the wait for one chunk and that for the next stands the product of the first.
TEST(ChunkCollectives, ProductsStandBetweenTheWaits) {
  Fusion fusion = parseFusion(kSequenceParallel);
  const Program program = compiled(fusion, 2, 3);
  std::string order;
  for (const Instruction& x : choiceOf(program).then_body) {
    const auto* post = std::get_if<Communicate>(&x.op);
    if (post != nullptr) order += post->kind == CollectiveKind::Allgather ? 'g' : 's';
    if (std::holds_alternative<CallLibrary>(x.op)) order += 'p';
    if (const auto* wait = std::get_if<Wait>(&x.op); wait != nullptr && wait->stream == 0) {
      order += 'w';
    }
  }
  EXPECT_EQ(order.substr(0, 9), "gggwpwpwp");
  EXPECT_EQ(order.substr(9, 6), "pspsps");
}

TEST(ChunkCollectives, OffAndOneChunkLeaveTheProgramWhole) {
  const Fusion fusion = parseFusion(kSequenceParallel);
  EXPECT_EQ(posts(compiled(fusion, 2, 1).body, CollectiveKind::Allgather), 1);
  CompileOptions off;
  off.passes.overlap = false;
  off.passes.chunks = 4;
  const Program serial = compile(fusion, 2, off);
  EXPECT_EQ(posts(serial.body, CollectiveKind::Allgather), 1);
  EXPECT_EQ(serial.streams(), 1);
  // Small sizes: what a chunk costs by itself is more than what it hides.
  EXPECT_EQ(posts(compiled(fusion, 2, PassOptions::kAutoChunks).body, CollectiveKind::Allgather),
            1);
  CompileOptions many;
  many.passes.chunks = PassOptions::kMostChunks + 1;
  EXPECT_THROW(compile(fusion, 2, many), UserError);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ChunkCollectives, LargeSizesAreCutBecauseItPays) {
  std::string text = kSequenceParallel;
  while (text.find("f32[") != std::string::npos) text = replaced(text, "f32[", "bf16[");
  const Fusion fusion = parseFusion(text);
  CompileOptions options;
  options.passes.chunk_sizes = {{"t", 16384}, {"h", 8192}, {"f", 28672}};
  const Program program = compile(fusion, 8, options);
  EXPECT_GT(posts(choiceOf(program).then_body, CollectiveKind::Allgather), 1);
}

TEST(ChunkCollectives, TheTextMayAskForChunks) {
  const std::string asks = replaced(kSequenceParallel, "return %y shard(@m, 0: x)",
                                    "return %y shard(@m, 0: x) stream(0: 3)");
  const Program program = compile(parseFusion(asks), 2, {});
  EXPECT_EQ(posts(choiceOf(program).then_body, CollectiveKind::ReduceScatter), 3);
  EXPECT_EQ(posts(choiceOf(program).then_body, CollectiveKind::Allgather), 1);
  EXPECT_EQ(print(program).find("stream("), std::string::npos);
  for (int64_t t : {0, 7, 24}) expectRight(asks.c_str(), 2, PassOptions::kAutoChunks, {{"t", t}});
  // One rank has nothing to overlap with, and that is no error.
  expectRight(asks.c_str(), 1, PassOptions::kAutoChunks, {});
}

TEST(ChunkCollectives, TheTextNamesTheAxis) {
  const std::string tokens = replaced(kBatchedSequence, "return %y shard(@m, 1: x)",
                                      "return %y shard(@m, 1: x) stream(1: 3)");
  const Program sp = compile(parseFusion(tokens), 2, {});
  EXPECT_EQ(posts(choiceOf(sp).then_body, CollectiveKind::ReduceScatter), 3);
  EXPECT_EQ(posts(choiceOf(sp).then_body, CollectiveKind::Allgather), 1);
  // Batches: the outer ones, and the tokens of a single one.
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

void expectRefused(const std::string& text, const std::string& why) {
  try {
    compile(parseFusion(text), 2, {});
    ADD_FAILURE() << "compiled:\n" << text;
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
  }
}

// Batches and tokens of the gathered tensor lie the other way round; the product sums over the last
// axis.
TEST(ChunkCollectives, AxesOfWhichAChunkIsNoStretchOfMemoryAreRefused) {
  const std::string cut = "are cut along axis 1";
  expectRefused(replaced(kBatchedSequence, "return %y shard(@m, 1: x)",
                         "return %y shard(@m, 1: x) stream(0: 2)"),
                "%y: stream(0: 2): the reduce_scatter of line 7 and its product " + cut);
  expectRefused(replaced(kBatchedSequence, "return %y shard(@m, 1: x)",
                         "return %y shard(@m, 1: x) stream(2: 2)"),
                cut);
  const std::string two = replaced(kBatchedTensor, "%x: f32[b, t, h]", "%x: f32[2, t, h]");
  expectRefused(replaced(two, "return %y shard(@m)", "return %y shard(@m) stream(1: 2)"),
                "are cut along axis 0");
}

TEST(ChunkCollectives, AskingForChunksOfNothingIsAnError) {
  expectRefused(replaced(kSequenceParallel, "%x: f32[t, h] shard(@m, 0: x)",
                         "%x: f32[t, h] shard(@m, 0: x) stream(1: 3)"),
                "%x: stream(1: 3)");
  expectRefused(
      replaced(kSequenceParallel, "%g = relu(%a)", "%g = tanh(%a) shard(@m, 1: x) stream(0: 3)"),
      "%g: stream(0: 3): no product next to a collective");
  expectRefused(replaced(kSequenceParallel, "return %y shard(@m, 0: x)",
                         "return %y shard(@m, 0: x) stream(0: 65)"),
                "more than 64 chunks");
  // The relu goes into the product.
  expectRefused(replaced(kSequenceParallel, "%a = matmul(%x, %w1)",
                         "%a = matmul(%x, %w1) shard(@m, 1: x) stream(0: 3)"),
                "%a: stream(0: 3): it is computed within");
  const std::string odd = R"(heddle 1
mesh @m = [x=2]
fusion odd(%x: f32[23, 6] shard(@m), %w: f32[6, 8] shard(@m, 1: x), %v: f32[8, 6] shard(@m, 0: x)) {
  %a = matmul(%x, %w)
  %g = tanh(%a)
  %y = matmul(%g, %v)
  return %y shard(@m) stream(0: 2)
}
)";
  expectRefused(odd, "do not divide into 2 chunks");
}

// The version in chunks does not exist at the sizes of the file itself.
TEST(ChunkCollectives, DefaultsThatDoNotDivideCompileToo) {
  for (const char* t : {"t = 23", "t = 1", "t = 7"}) {
    const std::string text = replaced(kSequenceParallel, "t = 24", t);
    expectRight(text.c_str(), 2, 2, {});
    expectRight(text.c_str(), 2, 2, {{"t", 24}});
  }
}

// By hand: what stands between a product and its collective may take away what it reads.
TEST(ChunkCollectives, AProductWhoseOperandChangesStaysWhereItIs) {
  const auto program = [](const std::string& between) {
    return parseProgram(R"(heddle 1
mesh @m = [x=2]
kernel @k {
  fusion k(%a: f32[t, h]) {
    %b = exp(%a)
    return %b
  }
}
program main(%x: f32[t, h], %w: f32[h, h]) -> (%d) with t = 8, h = 4 {
  slot %a: f32[t, h]
  slot %c: f32[t, h]
  slot %d: f32[t, h]
  %a = allocate
  launch @k(%x) -> (%a)
  %c = allocate
  call_library matmul(%a, %w) -> (%c)
)" + between + R"(  %d = allocate
  $t = communicate allreduce %c -> %d team=@m[x] op=sum
  wait $t
}
)");
  };
  PassOptions options;
  options.chunks = 2;
  EXPECT_EQ(posts(runPasses(program(""), options).body, CollectiveKind::Allreduce), 3);
  EXPECT_EQ(posts(runPasses(program("  launch @k(%a) -> (%a)\n"), options).body,
                  CollectiveKind::Allreduce),
            1);
}

// A tensor that somebody else reads too is gathered whole.
TEST(ChunkCollectives, AGatheredTensorWithOtherReadersStaysWhole) {
  const Program program = compiled(parseFusion(R"(heddle 1
mesh @m = [x=ranks]
fusion seen(%x: f32[t, h] shard(@m, 0: x), %w: f32[h, f] shard(@m, 1: x)) with t = 8, h = 6, f = 4 {
  %g = set(%x) shard(@m)
  %a = matmul(%g, %w)
  return %a shard(@m, 1: x), %g shard(@m)
}
)"),
                                   2, 2);
  EXPECT_EQ(posts(program.body, CollectiveKind::Allgather), 1);
}

std::vector<std::string> explained(const Fusion& fusion, int ranks, PassOptions options) {
  const Fusion ready = heddle::runPasses(fusion, ranks);
  return explainChunks(lower(segment(ready), ranks), options);
}

TEST(ChunkCollectives, WhatIsCutAndWhyNotIsTold) {
  const Fusion fusion = parseFusion(kBatchedSequence);
  PassOptions three;
  three.chunks = 3;
  const auto cut = explained(fusion, 2, three);
  ASSERT_EQ(cut.size(), 2U);
  EXPECT_NE(cut[0].find("is cut with 1 product in 3 chunks of axis 1"), std::string::npos)
      << cut[0];
  const auto whole = explained(fusion, 2, {});
  EXPECT_NE(whole[1].find("-> %y stays whole: "), std::string::npos) << whole[1];
  EXPECT_NE(whole[1].find("2 chunks of axis 1"), std::string::npos) << whole[1];
  const auto flat = explained(parseFusion(kBatchedTensor), 2, three);
  EXPECT_NE(flat.at(0).find("3 chunks of axes 0, 1"), std::string::npos) << flat[0];
  const auto seen = explained(parseFusion(R"(heddle 1
mesh @m = [x=2]
fusion seen(%x: f32[8, 6] shard(@m, 0: x), %w: f32[6, 8] shard(@m, 1: x)) {
  %g = set(%x) shard(@m)
  %a = matmul(%g, %w)
  return %a shard(@m, 1: x), %g shard(@m)
}
)"),
                              2, {});
  EXPECT_NE(seen.at(0).find("stays whole: %g is not allocated for it alone"), std::string::npos)
      << seen[0];
}

TEST(ChunkCost, RowsThatFillNoTileCostAsIfTheyDid) {
  // 130 rows are two tiles, 256 as well.
  ChunkedWork work{6e11, 0, false, 1, 8, 256};
  const double full = chunkedSeconds(work, 1);
  work.rows = 130;
  work.flops *= 130.0 / 256;
  EXPECT_NEAR(chunkedSeconds(work, 1), full, 1e-9);
}

TEST(ChunkCost, MoreChunksOnlyWhereTheyPay) {
  // Nothing to hide: one chunk. Equal sides: half of one of them can be hidden by two chunks.
  EXPECT_EQ(cheapestChunks({0, 1e9, false, 1}, {1, 2, 4}), 1);
  EXPECT_EQ(cheapestChunks({6e9, 3.5e6, false, 1}, {1, 2, 4, 8}), 1);
  EXPECT_EQ(cheapestChunks({6e11, 3.5e8, false, 1, 16}, {1, 2}), 2);
  // 1 ms each: whole 2 ms. In two parts 0.5 + 2 * 0.5, the product without 16 of 132 SMs, and what
  // the calls cost.
  EXPECT_NEAR(chunkedSeconds({6e11, 3.5e8, false, 1, 16}, 2), 1.64e-3, 1e-4);
  // 8 blocks move half as much: the collective decides, and stays whole.
  EXPECT_EQ(cheapestChunks({6e11, 3.5e8, false, 1, 8}, {1, 2}), 1);
}

}  // namespace
}  // namespace heddle::host
