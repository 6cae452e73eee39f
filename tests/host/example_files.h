#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "host/text/program_text.h"
#include "ir/text/fusion_text.h"
#include "tests/host/rank_harness.h"

// Reads the files of examples/ for tests. The current folder must be the root of the sources.
namespace heddle::host::testing {

inline const char* const kFusionExamples[] = {"gelu_backward_bias_grad.fusion", "softmax.fusion",
                                              "layer_norm.fusion", "swiglu.fusion",
                                              "tp_mlp.fusion"};

// A sharded example, with the numbers of ranks and the sizes to test.
struct ShardedExample {
  const char* name;
  std::vector<int> ranks;
  std::vector<SizeBindings> sizes;  // to test in addition to the default sizes
};

inline const std::vector<ShardedExample>& shardedExamples() {
  static const std::vector<ShardedExample> examples = {
      {"sp_mlp.fusion",
       {1, 2, 3, 4, 8},
       {{{"tokens", 5}, {"hidden", 7}, {"features", 11}}, {{"tokens", 1}}, {{"tokens", 0}}}},
      {"layer_norm_sharded.fusion", {1, 2, 3, 4, 8}, {{{"tokens", 3}, {"hidden", 5}}}},
      {"embedding_vocab_sharded.fusion",
       {1, 2, 3, 4, 8},
       {{{"tokens", 5}, {"vocabulary", 6}, {"hidden", 3}}}},
      {"dp_tp_2d.fusion", {2, 4, 8}, {{{"tokens", 5}, {"hidden", 7}, {"features", 9}}}},
      {"attention_tp.fusion", {1, 2, 3, 4, 8}, {{{"tokens", 5}, {"hidden", 7}}}},
      {"transformer_block_tp.fusion", {1, 2, 3, 4, 8}, {}},
      {"pipeline_2stage.fusion", {2, 3, 4}, {{{"batch", 7}, {"hidden", 5}, {"features", 3}}}},
      {"between_meshes.fusion", {4, 8}, {{{"n", 5}, {"k", 3}}, {{"n", 1}, {"k", 2}}, {{"n", 0}}}},
      {"all_reshardings.fusion", {1, 2, 3, 4, 8}, {{{"n", 5}, {"k", 3}}, {{"n", 8}, {"k", 8}}}},
  };
  return examples;
}

// Returns sizes for the mixture of experts. They cover uneven blocks, ranks without tokens or
// experts, and experts with no tokens or with more than one block of tokens.
inline const std::vector<SizeBindings>& expertSizes() {
  static const std::vector<SizeBindings> sizes = {
      {},
      {{"tokens", 5}, {"experts", 8}},
      {{"tokens", 1}},
      {{"tokens", 0}},
      {{"tokens", 50}, {"experts", 2}, {"block", 3}},
      {{"tokens", 9}, {"experts", 3}, {"hidden", 5}, {"features", 3}, {"block", 2}},
  };
  return sizes;
}

inline std::string readExample(const std::string& name) {
  std::ifstream file("examples/" + name);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline Fusion fusionExample(const std::string& name) {
  return parseFusion(readExample(name), name);
}

inline Program programExample(const std::string& name) {
  return std::get<Program>(parseFile(readExample(name), name));
}

inline Program printedAndParsed(const Program& program) {
  return std::get<Program>(parseFile(print(program), "printed"));
}

// Returns options that give every symbol of the file the value `size`.
inline HarnessOptions optionsFor(const std::vector<std::pair<std::string, int64_t>>& symbols,
                                 int ranks, int64_t size) {
  HarnessOptions options;
  options.ranks = ranks;
  for (const auto& [symbol, value] : symbols) options.sizes[symbol] = size;
  return options;
}

inline void expectClose(const std::vector<HostTensor>& got, const std::vector<HostTensor>& expected,
                        const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    const double bound = expected[i].dtype == DType::BF16 ? 3e-2 : 2e-5;
    EXPECT_LE(relativeError(got[i], expected[i]), bound) << what << ", output " << i;
  }
}

inline void expectExperts(const Program& program, const Fusion& reference, HarnessOptions options,
                          const SizeBindings& sizes, const std::string& what) {
  options.sizes = SizeBindings(program.size_defaults.begin(), program.size_defaults.end());
  for (const auto& [symbol, size] : sizes) options.sizes[symbol] = size;
  options.runs = 2;
  expectClose(runProgram(program, options), expectedOf(reference, options), what);
}

// Requires that each rank gets its own elements back, doubled. A rank sends (rank + 2 * other) % 3
// elements to each other rank.
inline void expectExchange(const Program& program, const HarnessOptions& options,
                           const std::string& what) {
  HostTensor expected = inputOf(program, 0, options.sizes, options.ranks, options.seed);
  const int64_t columns = expected.sizes[1];
  for (int64_t rank = 0; rank < options.ranks; ++rank) {
    int64_t sent = 0;
    for (int64_t other = 0; other < options.ranks; ++other) sent += (rank + 2 * other) % 3;
    for (int64_t i = 0; i < sent; ++i) expected.as<float>()[rank * columns + i] *= 2;
  }
  expectClose(runProgram(program, options), {expected}, what);
}

// Runs a program that gathers the blocks of its input. Requires that the output equals the
// unsharded input.
inline void expectRing(const Program& program, HarnessOptions options, const std::string& what) {
  options.runs = 3;
  const HostTensor whole = inputOf(program, 0, options.sizes, options.ranks, options.seed);
  const auto outputs = runProgram(program, options);
  ASSERT_EQ(outputs.size(), 1u) << what;
  EXPECT_EQ(relativeError(outputs[0], whole), 0) << what;
}

// Requires that the three iterations add 1, 3 and 5, and that each sum is rounded to f32.
inline void expectLoop(const Program& program, const HarnessOptions& options,
                       const std::string& what) {
  HostTensor expected = inputOf(program, 0, options.sizes, options.ranks, options.seed);
  for (const float addend : {1.0f, 3.0f, 5.0f}) {
    for (int64_t i = 0; i < expected.numel(); ++i) expected.as<float>()[i] += addend;
  }
  const auto outputs = runProgram(program, options);
  ASSERT_EQ(outputs.size(), 1u) << what;
  EXPECT_EQ(relativeError(outputs[0], expected), 0) << what;
}

}  // namespace heddle::host::testing
