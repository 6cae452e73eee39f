// Lowers sharded fusions for random sizes. If two lowerings read equal values of sizes, both must
// give the same program.
#include <gtest/gtest.h>

#include <list>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "host/compile.h"
#include "host/device/cpu/cpu_device.h"
#include "host/fusion_executor.h"
#include "host/program/program.h"
#include "ir/base/error.h"
#include "ir/graph/fusion.h"
#include "ir/sizes/size_reads.h"
#include "ir/text/fusion_text.h"
#include "tests/host/example_files.h"
#include "tests/host/executable_common.h"
#include "tests/host/on_ranks.h"
#include "tests/sanitized.h"

namespace heddle::host::size_reads_cpu_test {
namespace {

struct Lowered {
  SizeReads reads;
  Program program;
};

// Returns nullopt if the fusion cannot be lowered for these sizes.
std::optional<Lowered> lowerFor(Fusion fusion, const SizeBindings& sizes, int ranks) {
  fusion.size_defaults.assign(sizes.begin(), sizes.end());
  Lowered result;
  try {
    const SizeReads::Recording recording(result.reads);
    result.program = compile(fusion, ranks);
  } catch (const UserError&) {
    return std::nullopt;
  }
  result.program.size_defaults.clear();
  return result;
}

SizeBindings randomSizes(const Fusion& fusion, std::mt19937& random) {
  static constexpr int64_t kSizes[] = {0, 1, 2, 3, 4, 8, 12, 64, 1024, 4096, 65536};
  SizeBindings sizes;
  for (const auto& [symbol, size] : fusion.size_defaults) sizes[symbol] = kSizes[random() % 11];
  return sizes;
}

// Returns how often the reads of an earlier lowering held for new sizes.
int compareLowerings(const Fusion& fusion, int ranks, const std::string& name) {
  std::mt19937 random(11);
  std::list<Lowered> earlier;
  int held = 0;
  for (int i = 0; i < heddle::testing::casesOf(12, 4); ++i) {
    const SizeBindings sizes = randomSizes(fusion, random);
    std::optional<Lowered> now = lowerFor(fusion, sizes, ranks);
    for (const Lowered& each : earlier) {
      if (!each.reads.holdFor(sizes)) continue;
      ++held;
      EXPECT_TRUE(now && sameProgram(each.program, now->program)) << name << ", lowering " << i;
    }
    if (!now) continue;
    EXPECT_TRUE(now->reads.holdFor(sizes)) << name << ", lowering " << i;
    earlier.push_back(std::move(*now));
  }
  return held;
}

TEST(SizeReads, EqualReadsGiveEqualPrograms) {
  int held = 0;
  for (const testing::ShardedExample& example : testing::shardedExamples()) {
    const Fusion fusion = parseFusion(testing::readExample(example.name));
    for (int ranks : example.ranks) {
      if (heddle::testing::kSanitized && ranks != example.ranks[1]) continue;
      if (ranks > 1) held += compareLowerings(fusion, ranks, example.name);
    }
  }
  EXPECT_GT(held, heddle::testing::casesOf(50, 10));
}

// The matrix product of the second fusion may be split into chunks, which a cost model decides.
TEST(SizeReads, OnlyDecidingSizesAreRead) {
  const Fusion free = parseFusion(
      "heddle 1\nmesh @m = [x=2]\nfusion f(%x: f32[n, k] shard(@m, 0: x)) with n = 8, k = 4 {\n"
      "  %y = exp(%x)\n  %s = sum(%y, axes=[0])\n  return %s\n}\n");
  const Fusion chunked = parseFusion(
      "heddle 1\nmesh @m = [x=2]\nfusion f(%x: f32[n, k] shard(@m, 0: x), %w: f32[k, k])"
      " with n = 8, k = 4 {\n"
      "  %g = set(%x) shard(@m)\n  %y = matmul(%g, %w)\n  return %y\n}\n");
  const SizeBindings small{{"n", 8}, {"k", 4}}, large{{"n", 1 << 16}, {"k", 4096}};
  EXPECT_FALSE(lowerFor(chunked, small, 2)->reads.holdFor(large));
  EXPECT_TRUE(lowerFor(free, small, 2)->reads.holdFor({{"n", 10}, {"k", 4}}));
}

TEST(SizeReads, QuestionsAreComparedByTheirAnswers) {
  SizeReads reads;
  {
    const SizeReads::Recording recording(reads);
    SizeReads::note(Size::mod(Size::symbol("n"), Size(4)), 2);
  }
  SizeReads::note(Size::symbol("n"), 6);  // nothing records
  EXPECT_TRUE(reads.holdFor({{"n", 10}}));
  EXPECT_FALSE(reads.holdFor({{"n", 11}}));
  EXPECT_FALSE(reads.holdFor({}));
}

// The ranks need a new plan for each size, but must lower the fusion only once. The test counts how
// often the pass `lower` runs.
TEST(SizeReads, RanksReachNewPlansWithoutLowering) {
  const Fusion fusion = parseFusion(
      "heddle 1\nmesh @m = [x=2]\nfusion f(%x: f32[n, k] shard(@m, 0: x)) {\n"
      "  %f = flip(%x, axes=[1])\n  %y = add(%f, 1.0)\n  return %y\n}\n");
  const std::vector<std::string> errors = testing::onRanks(2, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    int lowered = 0;
    CompileOptions options;
    options.passes.timing = [&](std::string_view pass, double) { lowered += pass == "lower"; };
    FusionExecutor executor(fusion, {device.get(), &world}, options);
    for (int64_t n = 1; n <= 9; ++n) {
      const TensorDesc desc = executor.inputDescs({{"n", n}, {"k", 2}})[0];  // also lowers
      HostTensor values(DType::F32, desc.sizes);
      for (int64_t i = 0; i < values.numel(); ++i) values.set(i, static_cast<double>(i));
      const int before = lowered;
      const Outputs outputs = executor.run({toDevice(*device, device->allocator(), values, desc)});
      outputs.wait();
      EXPECT_EQ(lowered - before, n == 1 ? 1 : 0) << "n = " << n;
      const std::vector<float> result = testing::floatsOf(*device, outputs[0]);
      ASSERT_EQ(result.size(), static_cast<size_t>(values.numel()));
      for (size_t i = 0; i < result.size(); ++i) {
        EXPECT_EQ(result[i], static_cast<float>((i / 2) * 2 + 1 - i % 2) + 1) << i;
      }
    }
    EXPECT_EQ(executor.stats().programs, 1);
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

}  // namespace
}  // namespace heddle::host::size_reads_cpu_test
