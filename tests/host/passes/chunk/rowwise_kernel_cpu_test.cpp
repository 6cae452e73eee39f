// Tests kernels between matrix products and collectives that run on the rows of one chunk.
#include <gtest/gtest.h>

#include "host/passes/chunk/rowwise_kernel.h"
#include "host/passes/pipeline.h"
#include "host/text/program_text.h"
#include "tests/host/passes/chunk/chunk_programs.h"

namespace heddle::host::rowwise_kernel_cpu_test {
namespace {

using chunk_testing::expectRight;
using chunk_testing::expectSameBits;
using chunk_testing::replaced;

// A kernel adds the partial sums of two matrix products. The result is then reduced once.
constexpr const char* kSumOfProducts = R"(heddle 1
mesh @m = [x=ranks]
fusion sums(%a: f32[b, t, f] shard(@m, 2: x), %c: f32[b, t, f] shard(@m, 2: x),
            %v: f32[f, h] shard(@m, 0: x), %w: f32[f, h] shard(@m, 0: x))
    with b = 2, t = 12, h = 6, f = 24 {
  %p = matmul(%a, %v)
  %q = matmul(%c, %w)
  %s = add(%p, %q)
  return %s shard(@m)
}
)";

// Two matrix products read the result of a kernel. The kernel reads the gathered tensor, a bias
// along the last axis, and an unsharded tensor.
constexpr const char* kGathered = R"(heddle 1
mesh @m = [x=ranks]
fusion gathered(%x: f32[b, t, h] shard(@m, 1: x), %bias: f32[h] shard(@m),
                %r: f32[b, t, h] shard(@m), %v: f32[h, f] shard(@m, 1: x),
                %w: f32[h, f] shard(@m, 1: x)) with b = 2, t = 12, h = 6, f = 24 {
  %g = set(%x) shard(@m)
  %s = add(%g, %bias)
  %m = mul(%s, %r)
  %p = matmul(%m, %v)
  %q = matmul(%m, %w)
  return %p shard(@m, 2: x), %q shard(@m, 2: x)
}
)";

std::string scattered() {
  return replaced(kSumOfProducts, "return %s shard(@m)", "return %s shard(@m, 1: x)");
}

TEST(RowwiseKernel, SumsOfMatmulsAreReducedInChunks) {
  for (int64_t t : {7, 12}) expectRight(kSumOfProducts, 2, 3, {{"t", t}});
  expectRight(scattered().c_str(), 3, 2, {});
  expectSameBits(scattered(), 2, 2);
}

TEST(RowwiseKernel, GatheredChunksPassThroughAKernel) {
  for (int64_t t : {7, 12}) expectRight(kGathered, 2, 3, {{"t", t}});
  expectSameBits(kGathered, 2, 2);
}

// A host program with a matrix product, a kernel, another matrix product and its reduction. Each
// test case changes one line.
constexpr const char* kTwoProducts = R"(heddle 1
mesh @m = [x=2]
kernel @k {
  fusion k(%a: f32[t, f]) {
    %b = tanh(%a)
    return %b
  }
}
kernel @half {
  fusion half(%a: f32[t, h]) {
    %b = mul(%a, 0.5)
    return %b
  }
}
program main(%x0: f32[t, h], %w: f32[h, f], %w2: f32[f, h]) -> (%d) with t = 16, h = 8, f = 24 {
  slot %x: f32[t, h]
  slot %a: f32[t, f]
  slot %g: f32[t, f]
  slot %c: f32[t, h]
  slot %d: f32[t, h]
  %x = allocate
  launch @half(%x0) -> (%x)
  %a = allocate
  call_library matmul(%x, %w) -> (%a)
  %g = allocate
  launch @k(%a) -> (%g)
  %c = allocate
  call_library matmul(%g, %w2) -> (%c)
  %d = allocate
  $t = communicate allreduce %c -> %d team=@m[x] op=sum
  wait $t
}
)";

// `calls` is the number of library calls. The program has an unsplit version with two calls, and a
// version in chunks. The version in chunks has four calls if both matrix products are split, and
// three calls if only the second one is.
TEST(RowwiseKernel, ProducerThatMayNotMoveStaysUnsplit) {
  const std::string before_g = "  %g = allocate\n", before_c = "  %c = allocate\n";
  const struct {
    const char* what;
    std::string from, to;
    int calls;
  } cases[] = {
      {"as it is", before_g, before_g, 6},
      {"its operand changes", before_g, "  launch @half(%x) -> (%x)\n" + before_g, 5},
      {"its operand changes late", before_c, "  launch @half(%x) -> (%x)\n" + before_c, 5},
      {"its operand is freed", before_g, "  free %x\n" + before_g, 5},
      {"the sum lies on its operand", "  %d = allocate\n", "  %d = alias %x\n", 5},
      {"what is between is printed", before_c, "  print %g\n" + before_c, 5},
  };
  for (const auto& each : cases) {
    const std::string text = chunk_testing::replaced(kTwoProducts, each.from, each.to);
    PassOptions options;
    options.chunks = 2;
    const Program program = runPasses(parseProgram(text), options);
    int calls = 0;
    forEachInstruction(program.body, [&](const Instruction& x, InstructionIndex) {
      calls += std::holds_alternative<CallLibrary>(x.op) ? 1 : 0;
    });
    EXPECT_EQ(calls, each.calls) << each.what << "\n" << print(program);
    testing::HarnessOptions harness;
    harness.ranks = 2;
    harness.sizes = {{"t", 16}, {"h", 8}, {"f", 24}};
    const auto whole = testing::runProgram(runPasses(parseProgram(text), {}), harness);
    harness.cpu.adversarial_seed = 7;
    const auto parts = testing::runProgram(program, harness);
    EXPECT_LT(testing::relativeError(parts.at(0), whole.at(0)), 1e-5) << each.what;
  }
}

// The kernel normalizes each row, so its chunks are complete rows.
TEST(RowwiseKernel, GatheredChunksPassThroughAReductionOfRows) {
  const std::string rows = replaced(
      kGathered, "%m = mul(%s, %r)",
      "%o = mul(%s, %r)\n  %e = max(%o, axes=[2], keepdim=true)\n  %n = sub(%o, %e)\n  %z = "
      "min(%n, axes=[2], keepdim=true)\n  %m = add(%n, %z)");
  int launches = 0;
  forEachInstruction(chunk_testing::compiled(parseFusion(rows), 2, 3).body,
                     [&](const Instruction& x, InstructionIndex) {
                       launches += std::holds_alternative<LaunchKernel>(x.op) ? 1 : 0;
                     });
  EXPECT_GE(launches, 4) << "one in the unsplit version and three in the version in chunks";
  for (int64_t t : {7, 12}) expectRight(rows.c_str(), 2, 3, {{"t", t}});
  expectSameBits(rows, 2, 2);
}

TEST(RowwiseKernel, KernelsThatStayInTheirRowsAreRowwise) {
  const auto rows = [](const std::string& body) {
    return rowwiseKernelOf(
        parseFusion("heddle 1\nfusion k(%x: f32[t, h], %b: f32[h], %s: f32 = 2) {\n" + body +
                    "}\n"),
        2);
  };
  const RowwiseKernel scaled = rows("  %z = mul(%x, %s)\n  %y = add(%z, %b)\n  return %y\n");
  EXPECT_EQ(scaled.why, "");
  EXPECT_EQ(scaled.has_rows, (std::vector<bool>{true, false, false}));
  EXPECT_EQ(rows("  %z = sum(%x, axes=[1], keepdim=true)\n  %y = div(%x, %z)\n  return %y\n").why,
            "");
  EXPECT_NE(rows("  %y = sum(%x, axes=[1], keepdim=true)\n  return %y\n").why, "");
  EXPECT_NE(rows("  %z = sum(%x, axes=[0], keepdim=true)\n  %y = div(%x, %z)\n  return %y\n").why,
            "");
  EXPECT_NE(rows("  %i = arange(stop=8)\n  %y = exp(%x)\n  return %y, %i\n").why, "");
}

}  // namespace
}  // namespace heddle::host::rowwise_kernel_cpu_test
