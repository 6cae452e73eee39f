// Tests that a FusionExecutor on several ranks creates its programs for the sizes of a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "host/compile.h"
#include "host/device/cpu/cpu_device.h"
#include "host/device/null/null_device.h"
#include "host/fusion_executor.h"
#include "host/tensor.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"
#include "tests/host/on_ranks.h"

namespace heddle::host::executor_sizes_cpu_test {
namespace {

using testing::floatsOf;
using testing::onRanks;

// Counts how often the fusion is lowered.
CompileOptions countingOptions(int& lowered) {
  CompileOptions options;
  options.passes.timing = [&lowered](std::string_view pass, double) {
    lowered += pass == "propagateSharding" ? 1 : 0;
  };
  return options;
}

// With an even number of rows, the reshape needs no communication. With an odd number it needs
// another program, which gathers the rows first. The default size is even.
TEST(ExecutorSizes, FusionIsLoweredForTheSizesOfTheRun) {
  const Fusion fusion = parseFusion(R"(heddle 1
mesh @m = [x=ranks]
fusion f(%x: f32[rows, 3] shard(@m, 0: x)) with rows = 4 {
  %flat = reshape(%x, sizes=[rows*3])
  %y = add(%flat, %flat)
  return %y
}
)");
  const auto errors = onRanks(2, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    int lowered = 0;
    FusionExecutor executor(fusion, {device.get(), &world}, countingOptions(lowered));
    for (const int64_t rows : {4, 5, 4, 8, 3, 5, 4}) {
      const int64_t most = (rows + 1) / 2, begin = world.rank() * most;
      TensorDesc desc = denseDesc(DType::F32, {std::min(most, rows - begin), 3});
      desc.global = {rows, 3};
      desc.alloc = {most, 3};
      desc.offset = {begin, 0};
      HostTensor block(DType::F32, desc.sizes);
      for (int64_t i = 0; i < block.numel(); ++i) {
        block.as<float>()[i] = static_cast<float>(3 * desc.offset[0] + i);
      }
      const Outputs outputs = executor.run({toDevice(*device, device->allocator(), block, desc)});
      outputs.wait();
      const TensorDesc& got = std::get<Tensor>(outputs[0]).desc;
      EXPECT_EQ(got.sizes[0], rows % 2 == 0 ? 3 * rows / 2 : 3 * rows);
      const std::vector<float> values = floatsOf(*device, outputs[0]);
      for (size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(values[i], static_cast<float>(2 * (got.offset[0] + static_cast<int64_t>(i))));
      }
    }
    EXPECT_EQ(lowered, 2);  // for even and for odd numbers of rows
    const Executable::Stats stats = executor.stats();
    EXPECT_EQ(stats.programs, 2);
    EXPECT_EQ(stats.plans, 4);
    EXPECT_EQ(stats.runs, 7);
    world.barrier();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

Fusion matmulOf(int64_t default_tokens) {
  return parseFusion(fmt::format(R"(heddle 1
mesh @m = [x=ranks]
fusion f(%x: bf16[tokens, 8192] shard(@m, 1: x), %w: bf16[8192, 8192] shard(@m, 0: x))
    with tokens = {} {{
  %y = matmul(%x, %w)
  return %y shard(@m)
}}
)",
                                 default_tokens));
}

// Returns the blocks of a rank for the null device.
std::vector<Argument> blocksOf(const Program& program, int64_t tokens, comm::World& world) {
  std::vector<Argument> inputs;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const TensorDesc desc = inputDesc(program, i, {{"tokens", tokens}}, world.rank(), world.size());
    inputs.emplace_back(Tensor{&world, desc, nullptr});
  }
  return inputs;
}

// With 64 tokens, the matrix product has 4 GFLOP per device and takes less time than starting
// another collective. With 16384 tokens it has 1 TFLOP and takes as long as its collective. Only
// then are chunks faster, whatever the default sizes are. Similar sizes share a program, and all
// programs share the communicators.
TEST(ExecutorSizes, ChunksFollowTheSizesOfTheRun) {
  for (const int64_t default_tokens : {64, 16384}) {
    const Fusion fusion = matmulOf(default_tokens);
    const auto errors = onRanks(2, [&](comm::World& world) {
      const auto counts = std::make_shared<NullCounts>();
      const auto device = makeNullDevice(counts);
      FusionExecutor executor(fusion, {device.get(), &world});
      const Program written = compile(fusion, 2);
      const auto postsOf = [&](int64_t tokens) {
        const int64_t before = counts->communicate.load();
        executor.run(blocksOf(written, tokens, world));
        return counts->communicate.load() - before;
      };
      EXPECT_EQ(postsOf(64), 1);
      const int64_t chunks = postsOf(16384);
      EXPECT_TRUE(chunks > 1 && chunks <= 8) << chunks;
      EXPECT_EQ(postsOf(32), 1);
      EXPECT_EQ(postsOf(16384), chunks);
      EXPECT_EQ(postsOf(15360), chunks);
      EXPECT_EQ(executor.stats().programs, 2);
      EXPECT_EQ(executor.stats().communicators,
                3);  // two with copy channels for chunks, and one without
      world.barrier();
    });
    for (const std::string& error : errors) EXPECT_EQ(error, "");
  }
}

// inputDescs() describes the blocks of this rank for the sizes of a run. The memory of each block
// must be large enough for the largest block of any rank.
TEST(ExecutorSizes, InputDescsFollowTheSizesOfTheRun) {
  const Fusion fusion = parseFusion(R"(heddle 1
mesh @m = [x=ranks]
fusion f(%x: f32[rows, n] shard(@m, 0: x), %s: f32) with rows = 4, n = 3 {
  %y = mul(%x, %s)
  return %y shard(@m)
}
)");
  const auto errors = onRanks(2, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    FusionExecutor executor(fusion, {device.get(), &world});
    EXPECT_EQ(executor.inputDescs().at(0).sizes, (std::vector<int64_t>{2, 3}));
    for (const int64_t rows : {5, 2, 0}) {
      const std::vector<TensorDesc> descs = executor.inputDescs({{"rows", rows}});
      ASSERT_EQ(descs.size(), 2U);
      const int64_t most = (rows + 1) / 2, begin = std::min(world.rank() * most, rows);
      EXPECT_EQ(descs[0].sizes, (std::vector<int64_t>{std::min(most, rows - begin), 3}));
      EXPECT_EQ(descs[0].global, (std::vector<int64_t>{rows, 3}));
      EXPECT_EQ(descs[0].alloc, (std::vector<int64_t>{most, 3}));
      HostTensor block(DType::F32, descs[0].sizes);
      std::fill_n(block.as<float>(), block.numel(), 1.5F);
      const Outputs outputs =
          executor.run({toDevice(*device, device->allocator(), block, descs[0]), Scalar(2.0)});
      outputs.wait();
      EXPECT_EQ(floatsOf(*device, outputs[0]),
                std::vector<float>(static_cast<size_t>(3 * rows), 3.0F));
    }
    EXPECT_THROW(executor.inputDescs({{"columns", 3}}), UserError);
    world.barrier();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

// The inputs of rank 1 are wrong. Both ranks must get an error.
TEST(ExecutorSizes, WrongInputsAreReportedBeforeLowering) {
  const Fusion fusion = parseFusion(R"(heddle 1
mesh @m = [x=ranks]
fusion f(%x: f32[n] shard(@m), %y: f32[n] shard(@m)) {
  %z = add(%x, %y)
  return %z
}
)");
  const auto errors = onRanks(2, [&](comm::World& world) {
    const auto device = makeNullDevice();
    FusionExecutor executor(fusion, {device.get(), &world});
    executor.run({testing::nullTensor({4}), testing::nullTensor({world.rank() == 0 ? 4 : 5})});
    world.barrier();
  });
  const std::string why = "size n is 4 in axis 0 of %x but 5 in axis 0 of %y";
  EXPECT_EQ(errors[1], why);
  EXPECT_NE(errors[0].find("rank 1"), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find(why), std::string::npos) << errors[0];
}

// Rank 1 has sizes that need another program than the sizes of rank 0.
TEST(ExecutorSizes, SizesThatNeedAnotherProgramAreReported) {
  const Fusion fusion = matmulOf(64);
  const auto errors = onRanks(2, [&](comm::World& world) {
    const auto device = makeNullDevice();
    FusionExecutor executor(fusion, {device.get(), &world});
    const Program written = compile(fusion, 2);
    executor.run(blocksOf(written, 64, world));
    executor.run(blocksOf(written, world.rank() == 0 ? 64 : 16384, world));
    // The null device of rank 0 does not wait for other ranks, so this loop does.
    while (world.fault().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    world.barrier();
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("rank 1 is lost in run 2"), std::string::npos) << error;
    EXPECT_NE(error.find(": it runs another program than rank 0\n"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace heddle::host::executor_sizes_cpu_test
