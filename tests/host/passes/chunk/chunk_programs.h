#pragma once

#include <gtest/gtest.h>

#include <string>

#include "host/compile.h"
#include "host/program/visit.h"
#include "host/text/program_text.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/rank_harness.h"
#include "tests/sanitized.h"

// Fusions in which matrix products are next to collectives. The pass chunk_collectives splits both
// into chunks of rows. The functions here check that the results stay right.
namespace heddle::host::chunk_testing {

using comm::CollectiveKind;
using testing::HarnessOptions;

// Input and output are sharded by rows: allgather -> matrix product, and matrix product ->
// reduce-scatter.
inline constexpr const char* kSequenceParallel = R"(heddle 1
mesh @m = [x=ranks]
fusion sp(%x: f32[t, h] shard(@m, 0: x), %w1: f32[h, f] shard(@m, 1: x),
          %w2: f32[f, h] shard(@m, 0: x)) with t = 24, h = 6, f = 96 {
  %a = matmul(%x, %w1)
  %g = relu(%a)
  %y = matmul(%g, %w2)
  return %y shard(@m, 0: x)
}
)";

// Input and output are unsharded: matrix product -> allreduce.
inline constexpr const char* kTensorParallel = R"(heddle 1
mesh @m = [x=ranks]
fusion tp(%x: f32[t, h] shard(@m), %w1: f32[h, f] shard(@m, 1: x),
          %w2: f32[f, h] shard(@m, 0: x)) with t = 24, h = 6, f = 96 {
  %a = matmul(%x, %w1)
  %g = relu(%a)
  %y = matmul(%g, %w2)
  return %y shard(@m)
}
)";

// Two matrix products, one with a bias, read one gathered tensor of three axes.
inline constexpr const char* kTwoReaders = R"(heddle 1
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

// The rows are sharded over both axes of a mesh.
inline constexpr const char* kTwoAxes = R"(heddle 1
mesh @m = [y=2, x=2]
fusion grid(%x: f32[t, h] shard(@m, 0: [y, x]), %w1: f32[h, f] shard(@m, 1: x),
            %w2: f32[f, h] shard(@m, 0: x)) with t = 24, h = 6, f = 96 {
  %a = matmul(%x, %w1)
  %g = relu(%a)
  %y = matmul(%g, %w2)
  return %y shard(@m, 0: [y, x])
}
)";

inline Program compiled(const Fusion& fusion, int ranks, int64_t chunks) {
  CompileOptions options;
  options.passes.chunks = chunks;
  return compile(fusion, ranks, options);
}

inline int posts(const std::vector<Instruction>& body, CollectiveKind kind) {
  int count = 0;
  forEachInstruction(body, [&](const Instruction& x, InstructionIndex) {
    const auto* post = std::get_if<Communicate>(&x.op);
    if (post != nullptr && post->kind == kind) ++count;
  });
  return count;
}

inline const If& choiceOf(const Program& program) {
  HEDDLE_USER_CHECK(program.body.size() == 1, "the program is not a single If: {}", print(program));
  return std::get<If>(program.body.front().op);
}

inline void expectRight(const char* text, int ranks, int64_t chunks, const SizeBindings& sizes) {
  const Fusion fusion = parseFusion(text);
  const Program program = parseProgram(print(compiled(fusion, ranks, chunks)));
  HarnessOptions options;
  options.ranks = ranks;
  for (const auto& [symbol, value] : fusion.size_defaults) options.sizes[symbol] = value;
  for (const auto& [symbol, value] : sizes) options.sizes[symbol] = value;
  const auto expected = testing::expectedOf(fusion, options);
  for (uint64_t seed = 0; seed < heddle::testing::casesOf(3U, 2U); ++seed) {
    if (seed > 0) options.cpu.adversarial_seed = seed;
    const auto got = testing::runProgram(program, options);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_LT(testing::relativeError(got[i], expected[i]), 1e-5)
          << fusion.name << " on " << ranks << " ranks, " << chunks << " chunks, output " << i;
    }
  }
}

// Requires that the program in chunks gives the same bits as the unsplit program. Replaces f32 by
// i32: for fewer rows, a library may sum f32 in another order.
inline void expectSameBits(std::string text, int ranks, int64_t chunks) {
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

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

}  // namespace heddle::host::chunk_testing
