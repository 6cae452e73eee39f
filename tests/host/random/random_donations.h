#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "host/compile.h"
#include "host/plan/bind_inputs.h"
#include "host/unroll/unroll.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/random/random_reuses.h"
#include "tests/host/rank_harness.h"

// Runs random fusions with random donated inputs, on one rank and on several, in chunks and with
// adversarial streams. Compares the outputs with the reference, and the reported memory with that
// of a program in which no value reuses memory.
namespace heddle::host::random_donations {

// Returns the inputs that are in no output. Only these can be donated.
inline std::vector<size_t> donatable(const Program& program,
                                     const testing::HarnessOptions& options) {
  const Program concrete = concretized(program, options.ranks);
  UnrollRequest request{options.sizes, {}, 0, options.ranks};
  completeSizes(concrete, request.sizes);
  const Unrolled unrolled = unroll(concrete, request);
  std::vector<bool> is_returned(program.inputs.size(), false);
  for (const View& view : unrolled.outputs) {
    const int32_t input = view.buffer.valid() ? unrolled.buffers[view.buffer].input : -1;
    if (input >= 0) is_returned[static_cast<size_t>(input)] = true;
  }
  std::vector<size_t> inputs;
  for (size_t i = 0; i < is_returned.size(); ++i) {
    if (!is_returned[i]) inputs.push_back(i);
  }
  return inputs;
}

inline void expectReference(uint64_t seed, int ranks, DeviceKind kind) {
  std::mt19937_64 random(seed * 7919);
  const std::string text = random_reuses::FusionWriter(seed, ranks > 1, false).write();
  const Fusion fusion = parseFusion(text, "random");
  testing::HarnessOptions options;
  options.ranks = ranks;
  options.kind = kind;
  options.sizes = {{"n", std::vector<int64_t>{6, 7, 8, 16}[random() % 4]}};
  options.cpu.adversarial_seed = seed;
  options.runs = 2;
  CompileOptions compile_options;
  compile_options.passes.verify_each = true;
  compile_options.passes.chunks = std::vector<int64_t>{0, 1, 2, 4}[random() % 4];
  compile_options.passes.overlap = random() % 4 != 0;
  Program program;
  ASSERT_NO_THROW(program = compile(fusion, ranks, compile_options)) << text;
  for (size_t input : donatable(program, options)) {
    if (random() % 3 != 0) options.donated.push_back(input);
  }
  SCOPED_TRACE(fmt::format("seed {}, {} rank(s), n = {}, donated {}\n{}\n{}", seed, ranks,
                           options.sizes["n"], fmt::join(options.donated, ", "), text,
                           print(program)));
  EXPECT_EQ(print(parseProgram(print(program), "again")), print(program));
  Executable::Stats donating, plain, apart;
  const std::vector<HostTensor> expected = testing::expectedOf(fusion, options);
  options.take_stats = [&](const Executable::Stats& stats) { donating = stats; };
  const std::vector<HostTensor> got = testing::runProgram(program, options);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LT(testing::relativeError(got[i], expected[i]), 1e-4) << "output " << i;
  }
  options.donated.clear();
  options.take_stats = [&](const Executable::Stats& stats) { plain = stats; };
  testing::runProgram(program, options);
  compile_options.passes.skip = {"reuse_buffers"};
  options.take_stats = [&](const Executable::Stats& stats) { apart = stats; };
  testing::runProgram(compile(fusion, ranks, compile_options), options);
  EXPECT_LE(donating.peak_bytes, plain.peak_bytes);
  EXPECT_LE(plain.peak_bytes, apart.peak_bytes);
  EXPECT_EQ(plain.peak_bytes_without_reuse, apart.peak_bytes);
  EXPECT_EQ(donating.peak_bytes_without_reuse, apart.peak_bytes);
}

}  // namespace heddle::host::random_donations
