// Runs every example on CPU ranks and compares it with the reference evaluator or a plain loop.
#include <gtest/gtest.h>

#include "host/compile.h"
#include "host/device/cpu/cpu_device.h"
#include "ir/base/check.h"
#include "tests/host/example_files.h"
#include "tests/host/whole/loop_program.h"
#include "tests/sanitized.h"

namespace heddle::host::examples_cpu_test {
namespace {

using testing::expectClose;
using testing::expectedOf;
using testing::fusionExample;
using testing::HarnessOptions;
using testing::kFusionExamples;
using testing::optionsFor;
using testing::printedAndParsed;
using testing::programExample;
using testing::runProgram;

void expectRight(const Fusion& fusion, const Program& program, const HarnessOptions& options,
                 const std::string& what) {
  expectClose(runProgram(program, options), expectedOf(fusion, options), what);
}

TEST(ExamplesCpu, FusionsAreRightAtAnySize) {
  for (const char* name : kFusionExamples) {
    const Fusion fusion = fusionExample(name);
    const Program program = compile(fusion, 1);
    for (int64_t size : {0, 1, 7, 32}) {
      expectRight(fusion, program, optionsFor(fusion.size_defaults, 1, size),
                  fmt::format("{} at {}", name, size));
    }
  }
}

TEST(ExamplesCpu, TpMlpIsRightOnOneToFourRanks) {
  const Fusion fusion = fusionExample("tp_mlp.fusion");
  for (int ranks : {1, 2, 3, 4}) {
    const Program program = compile(fusion, ranks);
    for (int64_t size : {0, 1, 5, 24}) {
      expectRight(fusion, program, optionsFor(fusion.size_defaults, ranks, size),
                  fmt::format("{} ranks, size {}", ranks, size));
    }
  }
}

// The programs are printed and parsed before they run.
TEST(ExamplesCpu, ShardedFusionsAreRightOnManyRanks) {
  for (const testing::ShardedExample& example : testing::shardedExamples()) {
    const Fusion fusion = fusionExample(example.name);
    const Fusion again = parseFusion(print(fusion));
    EXPECT_TRUE(sameGraph(fusion, again)) << example.name;
    int number = 0;
    for (int ranks : example.ranks) {
      // With a sanitizer, one number of ranks above 1 is enough.
      if (number++ != 1 && heddle::testing::kSanitized) continue;
      const Program program = printedAndParsed(compile(again, ranks));
      std::vector<SizeBindings> all = example.sizes;
      if (all.empty() || !heddle::testing::kSanitized) all.emplace_back();
      for (const SizeBindings& sizes : all) {
        HarnessOptions options;
        options.ranks = ranks;
        options.sizes = testing::defaultSizes(fusion.size_defaults);
        for (const auto& [symbol, size] : sizes) options.sizes[symbol] = size;
        expectRight(fusion, program, options, fmt::format("{} on {} ranks", example.name, ranks));
      }
    }
  }
}

TEST(ExamplesCpu, PrintedFusionsGiveTheSameResults) {
  for (const char* name : kFusionExamples) {
    const Fusion fusion = fusionExample(name);
    const Fusion again = parseFusion(print(fusion));
    EXPECT_TRUE(sameGraph(fusion, again)) << name;
    EXPECT_EQ(print(again), print(fusion)) << name;
    const Program first = compile(fusion, 1);
    const Program second = compile(again, 1);
    for (int64_t size : {0, 1, 6}) {
      const HarnessOptions options = optionsFor(fusion.size_defaults, 1, size);
      const auto a = runProgram(first, options);
      const auto b = runProgram(second, options);
      ASSERT_EQ(a.size(), b.size()) << name;
      for (size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(testing::relativeError(b[i], a[i]), 0) << name << " at " << size;
      }
    }
  }
}

TEST(ExamplesCpu, PrintedProgramsGiveTheSameResults) {
  for (const char* name : kFusionExamples) {
    const Fusion fusion = fusionExample(name);
    for (int ranks : {1, 2}) {
      const Program program = compile(fusion, ranks);
      const Program again = printedAndParsed(program);
      EXPECT_TRUE(sameProgram(program, again)) << name;
      EXPECT_EQ(print(again), print(program)) << name;
      for (int64_t size : {0, 1, 6, 13}) {
        if (heddle::testing::kSanitized && size != 13) continue;
        expectRight(fusion, again, optionsFor(fusion.size_defaults, ranks, size),
                    fmt::format("{} printed, {} ranks, size {}", name, ranks, size));
      }
    }
  }
}

TEST(ExamplesCpu, RingAllgatherIsRightOnAnyNumberOfRanks) {
  const Program program = programExample("ring_allgather.hostir");
  const Program again = printedAndParsed(program);
  EXPECT_EQ(print(again), print(program));
  for (int ranks : {1, 2, 3, 4}) {
    for (int64_t size : {0, 1, 64, 77}) {
      testing::expectRing(again, optionsFor(program.size_defaults, ranks, size),
                          fmt::format("{} ranks, size {}", ranks, size));
    }
  }
}

TEST(ExamplesCpu, UnevenExchangeReturnsEveryElement) {
  const Program program = programExample("uneven_exchange.hostir");
  const Program again = printedAndParsed(program);
  EXPECT_EQ(print(again), print(program));
  for (int ranks : {1, 2, 3, 4}) {
    for (uint64_t seed : {0, 5}) {
      testing::HarnessOptions options = optionsFor(program.size_defaults, ranks, 33);
      options.cpu.adversarial_seed = seed;
      options.runs = 3;
      testing::expectExchange(again, options, fmt::format("{} ranks", ranks));
    }
  }
}

TEST(ExamplesCpu, ExpertsAreRightOnManyRanks) {
  const Fusion reference = fusionExample("moe_dispatch_combine.fusion");
  const Program program = programExample("moe_dispatch_combine.hostir");
  const Program again = printedAndParsed(program);
  EXPECT_EQ(print(again), print(program));
  int number = 0;
  for (int ranks : {1, 2, 3, 4, 8}) {
    for (const SizeBindings& sizes : testing::expertSizes()) {
      const bool taken = number % heddle::testing::kOneIn == 0 && (ranks == 3 || number % 2 == 0);
      if (++number; !taken) continue;
      HarnessOptions options;
      options.ranks = ranks;
      if (number % 3 == 0) options.cpu.adversarial_seed = number;
      testing::expectExperts(again, reference, options, sizes,
                             fmt::format("{} ranks, case {}", ranks, number));
    }
  }
}

TEST(ExamplesCpu, LoopAddsNine) {
  const Program program = programExample("in_place_loop.hostir");
  const Program again = printedAndParsed(program);
  EXPECT_EQ(print(again), print(program));
  for (int64_t size : {0, 1, 1000, 1003}) {
    const HarnessOptions options = optionsFor(program.size_defaults, 1, size);
    testing::expectLoop(program, options, fmt::format("size {}", size));
    testing::expectLoop(again, options, fmt::format("printed, size {}", size));
  }
}

TEST(ExamplesCpu, StreamsAndThreadsShareTheLoopProgram) {
  testing::checkLoopProgram(*makeCpuDevice({.threads = 2, .adversarial_seed = {}}));
  for (uint64_t seed = 0; seed < 4; ++seed) {
    testing::checkLoopProgram(*makeCpuDevice({.threads = 1, .adversarial_seed = seed}));
  }
}

}  // namespace
}  // namespace heddle::host::examples_cpu_test
