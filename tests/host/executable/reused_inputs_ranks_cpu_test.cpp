// Tests outputs that are stored in the memory of inputs, on several ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "host/compile.h"
#include "host/device/cpu/cpu_device.h"
#include "host/fusion_executor.h"
#include "host/text/program_text.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "tests/host/on_ranks.h"
#include "tests/host/rank_harness.h"

namespace heddle::host::reused_inputs_ranks_cpu_test {
namespace {

using testing::HarnessOptions;
using testing::relativeError;

Fusion fusionOf(const std::string& text) { return parseFusion("heddle 1\n" + text, "test"); }

// Runs the fusion once on several ranks, and compares the outputs with the reference. The harness
// allocates the inputs as inputDesc() says.
void expectReference(const std::string& text, const CompileOptions& compile_options,
                     HarnessOptions options) {
  const Fusion fusion = fusionOf(text);
  for (const auto& [symbol, value] : fusion.size_defaults) options.sizes[symbol] = value;
  const std::vector<HostTensor> expected = testing::expectedOf(fusion, options);
  const Program program = compile(fusion, options.ranks, compile_options);
  for (const uint64_t seed : {1, 2}) {
    options.cpu.adversarial_seed = seed;
    const std::vector<HostTensor> got = testing::runProgram(program, options);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_LT(relativeError(got[i], expected[i]), 1e-5) << "output " << i << "\n" << text;
    }
  }
}

// A data-parallel step: each rank has a part of the batch and of the moments, and all parameters.
const char* const kStep = R"(
mesh @m = [x=ranks]
fusion step(%x: f32[t, h] shard(@m, 0: x), %dy: f32[t, f] shard(@m, 0: x), %w: f32[h, f] shard(@m),
            %m: f32[h, f] shard(@m, 0: x)) with t = 20, h = 13, f = 5 {
  %xt = permute(%x, axes=[1, 0])
  %dw = matmul(%xt, %dy)
  %m9 = mul(%m, 0.9)
  %m1 = add(%m9, %dw)
  %u = mul(%m1, 0.1)
  %w1 = sub(%w, %u)
  return %w1 in! %w, %m1 in! %m
})";

TEST(ReusedInputsRanks, UnevenShardsAndReplicatedParametersAreRight) {
  for (const int ranks : {2, 3, 5}) {
    HarnessOptions options;
    options.ranks = ranks;
    expectReference(kStep, {}, options);
  }
}

TEST(ReusedInputsRanks, OutputsInAnotherOrderAreRight) {
  std::string text = kStep;
  text.replace(text.find("%m1 in! %m"), std::string("%m1 in! %m").size(),
               "%m1 in! %m, %w1 order=[1, 0], %m1 order=[1, 0]");
  for (const int ranks : {1, 2, 3}) {
    HarnessOptions options;
    options.ranks = ranks;
    expectReference(text, {}, options);
  }
}

TEST(ReusedInputsRanks, ChunksWriteIntoTheInput) {
  CompileOptions compile_options;
  compile_options.passes.chunks = 4;
  for (const int ranks : {2, 4}) {
    HarnessOptions options;
    options.ranks = ranks;
    expectReference(R"(
mesh @m = [x=ranks]
fusion f(%w: f32[t, f] shard(@m, 0: x), %x: f32[t, h] shard(@m, 1: x), %y: f32[h, f] shard(@m, 0: x))
    with t = 64, h = 16, f = 24 {
  %w1 = matmul(%x, %y)
  return %w1 in! %w
})",
                    compile_options, options);
  }
}

// t = 60 does not divide into 4 chunks on 4 ranks, so the run takes the unsplit version. t = 64
// takes the split version.
TEST(ReusedInputsRanks, BothVersionsOfAProgramInChunksWriteIntoTheInput) {
  CompileOptions compile_options;
  compile_options.passes.chunks = 4;
  for (const int t : {64, 60}) {
    HarnessOptions options;
    options.ranks = 4;
    options.sizes["t"] = t;
    const Fusion fusion = fusionOf(R"(
mesh @m = [x=ranks]
fusion f(%w: f32[t, f] shard(@m, 0: x), %x: f32[t, h] shard(@m, 1: x), %y: f32[h, f] shard(@m, 0: x))
    with t = 64, h = 16, f = 24 {
  %w1 = matmul(%x, %y)
  %r = relu(%w)
  return %w1 in! %w, %r
})");
    options.sizes["h"] = 16;
    options.sizes["f"] = 24;
    const Program program = compile(fusion, options.ranks, compile_options);
    const std::vector<HostTensor> expected = testing::expectedOf(fusion, options);
    const std::vector<HostTensor> got = testing::runProgram(program, options);
    EXPECT_LT(relativeError(got[0], expected[0]), 1e-5) << t;
    EXPECT_LT(relativeError(got[1], expected[1]), 1e-5) << t;
  }
}

// The input is gathered, and its shards are updated after the gather.
TEST(ReusedInputsRanks, UpdateWaitsForTheCollectiveThatReadsTheInput) {
  for (const bool overlap : {true, false}) {
    CompileOptions compile_options;
    compile_options.passes.overlap = overlap;
    HarnessOptions options;
    options.ranks = 4;
    expectReference(R"(
mesh @m = [x=ranks]
fusion f(%w: f32[t, h] shard(@m, 0: x), %x: f32[h, f] shard(@m, 1: x), %g: f32[t, h] shard(@m, 0: x))
    with t = 30, h = 16, f = 24 {
  %w1 = sub(%w, %g)
  %all = set(%w) shard(@m)
  %y = matmul(%all, %x)
  return %w1 in! %w, %y
})",
                    compile_options, options);
  }
}

// With padding missing, the collective cannot write into the caller's tensor.
TEST(ReusedInputsRanks, MissingPaddingIsAnErrorThatNamesTheInput) {
  const auto errors = testing::onRanks(3, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
    FusionExecutor executor(fusionOf(kStep), {device.get(), &world, nullptr});
    std::vector<Argument> inputs;
    for (TensorDesc desc : executor.inputDescs()) {
      desc.alloc = desc.sizes;
      desc.strides = stridesFor(desc.alloc, rowMajor(desc.rank()));
      const HostTensor values(desc.dtype, desc.sizes);
      inputs.emplace_back(toDevice(*device, device->allocator(), values, desc));
    }
    executor.run(inputs).wait();
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("input %w is itself sent or received, so it must be allocated as "
                         "inputDesc() says"),
              std::string::npos)
        << error;
  }
}

// The caller's tensors of each rank hold the new blocks.
TEST(ReusedInputsRanks, ExecutorUpdatesTheTensorsOfEachRank) {
  const auto errors = testing::onRanks(3, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 5});
    FusionExecutor executor(fusionOf(R"(
mesh @m = [x=ranks]
fusion f(%w: f32[n] shard(@m, 0: x), %g: f32[n] shard(@m)) with n = 10 {
  %w1 = sub(%w, %g)
  return %w1 in %w
})"),
                            {device.get(), &world, nullptr});
    std::vector<Tensor> tensors;
    for (const TensorDesc& desc : executor.inputDescs()) {
      HostTensor values(desc.dtype, desc.sizes);
      for (int64_t i = 0; i < values.numel(); ++i) values.set(i, Scalar(double(i)));
      tensors.push_back(toDevice(*device, device->allocator(), values, desc));
    }
    executor.run({tensors[0], tensors[1]}).wait();
    const HostTensor w = toHost(*device, tensors[0]);
    for (int64_t i = 0; i < w.numel(); ++i) {
      const double offset = static_cast<double>(tensors[0].desc.offset[0]);
      HEDDLE_USER_CHECK(toDouble(w.at(i)) == -offset, "element {} is {}", i, toDouble(w.at(i)));
    }
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

// Returns the error of each rank for a run whose preallocated tensor a change makes wrong on one
// rank, or on all ranks (-1).
std::vector<std::string> errorsWith(int changed, const std::function<void(Tensor&)>& change) {
  return testing::onRanks(2, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 5});
    FusionExecutor executor(fusionOf(R"(
mesh @m = [x=ranks]
fusion f(%x: f32[n, k] shard(@m, 0: x)) with n = 4, k = 6 {
  %s = sum(%x, axes=[0], keepdim=true)
  %y = sub(%x, %s) shard(@m, 0: x) order=[1, 0]
  return %y
})"),
                            {device.get(), &world, nullptr});
    TensorDesc desc = executor.inputDescs()[0];
    const HostTensor values(desc.dtype, desc.sizes);
    const Tensor x = toDevice(*device, device->allocator(), values, desc);
    desc.strides = {1, 2};
    RunOptions options;
    options.preallocated = {toDevice(*device, device->allocator(), values, desc)};
    if (changed < 0 || changed == world.rank()) change(options.preallocated[0]);
    executor.run({x}, options).wait();
  });
}

TEST(ReusedInputsRanks, PreallocatedOutputsThatDoNotFitAreRefusedOnEveryRank) {
  const std::pair<std::function<void(Tensor&)>, const char*> cases[] = {
      {[](Tensor& t) {
         t.desc.strides = {6, 1};
       },
       "output 0 (%y) must have the memory order [1, 0], its preallocated tensor has the sizes "
       "[2, 6] and the strides [6, 1]"},
      {[](Tensor& t) {
         t.desc.global = {5, 6};
       },
       "output 0 (%y) has the unsharded sizes [4, 6], its preallocated tensor has [5, 6]"},
      {[](Tensor& t) { t.desc.dtype = DType::I32; },
       "output 0 (%y) is f32[2, 6], its preallocated tensor is i32[2, 6]"},
      {[](Tensor& t) {
         t.desc.strides = {1, 1};
       },
       "preallocated output 0 (%y): its elements overlap, because it has the sizes [2, 6] and the "
       "strides [1, 1]"},
      {[](Tensor& t) { t.in_host_memory = true; },
       "preallocated output 0 (%y) is in host memory, expected memory of the device"},
  };
  for (const std::string& error : errorsWith(-1, [](Tensor&) {})) EXPECT_EQ(error, "");
  for (const auto& [change, expected] : cases) {
    for (const std::string& error : errorsWith(-1, change)) {
      EXPECT_NE(error.find(expected), std::string::npos) << error;
    }
  }
}

// The other rank waits for the sum, and must not wait forever.
TEST(ReusedInputsRanks, WrongTensorOfOneRankIsAnErrorOnEveryRank) {
  for (const std::string& error : errorsWith(1, [](Tensor& t) { t.desc.dtype = DType::I32; })) {
    EXPECT_NE(error.find("output 0 (%y) is f32[2, 6], its preallocated tensor is i32[2, 6]"),
              std::string::npos)
        << error;
  }
}

// Each trip adds the sum over all ranks to the input.
TEST(ReusedInputsRanks, LoopsUpdateTheInput) {
  const Program program = parseProgram(R"(heddle 1
mesh @m = [x=ranks]
kernel @k {
  fusion k(%x: f32[n], %s: f32[n]) {
    %y = add(%x, %s)
    return %y
  }
}
program main(%w: f32[n] shard(@m)) -> (%w in! %w) with n = 4 {
  slot %s: f32[n] shard(@m)
  for i in 0 .. 3 {
    %s = allocate stream=0
    $r = communicate allreduce %w -> %s team=@m[x] op=sum stream=0
    wait $r stream=0
    launch @k(%w, %s) -> (%w) stream=0
    free %s stream=0
  }
})",
                                       "test");
  for (const int ranks : {1, 2, 4}) {
    HarnessOptions options;
    options.ranks = ranks;
    options.sizes["n"] = 4;
    const HostTensor before = testing::inputOf(program, 0, options.sizes, ranks, options.seed);
    const HostTensor after = testing::runProgram(program, options).front();
    for (int64_t i = 0; i < before.numel(); ++i) {
      const double expected = toDouble(before.at(i)) * std::pow(1 + ranks, 3);
      EXPECT_NEAR(toDouble(after.at(i)), expected, 1e-4 * std::abs(expected)) << ranks;
    }
  }
}

}  // namespace
}  // namespace heddle::host::reused_inputs_ranks_cpu_test
