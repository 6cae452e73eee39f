// Tests inputs that the caller donates to a run, on several ranks.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "host/compile.h"
#include "host/device/cpu/cpu_device.h"
#include "host/fusion_executor.h"
#include "host/text/program_text.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"
#include "tests/host/on_ranks.h"
#include "tests/host/rank_harness.h"

namespace heddle::host::donated_inputs_ranks_cpu_test {
namespace {

using testing::HarnessOptions;
using testing::relativeError;

// A data-parallel step with a gradient that is summed over the ranks.
const char* const kStep = R"(heddle 1
mesh @m = [x=ranks]
fusion step(%x: f32[t, h] shard(@m, 0: x), %dy: f32[t, f] shard(@m, 0: x), %w: f32[h, f] shard(@m),
            %m: f32[h, f] shard(@m, 0: x)) with t = 20, h = 13, f = 5 {
  %xt = permute(%x, axes=[1, 0])
  %dw = matmul(%xt, %dy)
  %m9 = mul(%m, 0.9)
  %m1 = add(%m9, %dw)
  %u = mul(%m1, 0.1)
  %w1 = sub(%w, %u)
  return %w1, %m1
})";

// Both matrix products are split into chunks of rows.
const char* const kChunks = R"(heddle 1
mesh @m = [x=ranks]
fusion f(%x: f32[t, h] shard(@m, 1: x), %y: f32[h, f] shard(@m, 0: x), %z: f32[t, f] shard(@m, 0: x),
         %v: f32[f, f] shard(@m)) with t = 64, h = 16, f = 24 {
  %a = matmul(%x, %y)
  %b = add(%a, %z)
  %c = matmul(%b, %v)
  return %b, %c
})";

void expectReference(const std::string& text, int ranks, int64_t chunks,
                     const std::vector<size_t>& donated) {
  const Fusion fusion = parseFusion(text, "test");
  HarnessOptions options;
  options.ranks = ranks;
  options.donated = donated;
  options.runs = 2;
  for (const auto& [symbol, value] : fusion.size_defaults) options.sizes[symbol] = value;
  const std::vector<HostTensor> expected = testing::expectedOf(fusion, options);
  CompileOptions compile_options;
  compile_options.passes.chunks = chunks;
  compile_options.passes.verify_each = true;
  const Program program = compile(fusion, ranks, compile_options);
  for (const uint64_t seed : {1, 2}) {
    options.cpu.adversarial_seed = seed;
    const std::vector<HostTensor> got = testing::runProgram(program, options);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_LT(relativeError(got[i], expected[i]), 1e-5)
          << "output " << i << " on " << ranks << " ranks\n"
          << print(program);
    }
  }
}

TEST(DonatedInputsRanks, UnevenShardsAndReplicatedParametersAreRight) {
  for (const int ranks : {2, 3, 5}) {
    expectReference(kStep, ranks, 0, {2, 3});
    expectReference(kStep, ranks, 0, {0, 1, 2, 3});
  }
}

TEST(DonatedInputsRanks, ProgramsInChunksAreRight) {
  for (const int ranks : {2, 4}) {
    for (const int64_t chunks : {1, 2, 4}) expectReference(kChunks, ranks, chunks, {0, 1, 2, 3});
  }
}

// The last rank holds a smaller block. Its memory must have the size of the largest block, so that
// all ranks use it in the same way.
TEST(DonatedInputsRanks, BlockWithoutPaddingIsAnError) {
  const Fusion fusion = parseFusion(R"(heddle 1
mesh @m = [x=2]
fusion f(%x: f32[t] shard(@m, 0: x)) with t = 5 { %y = relu(%x) return %y })",
                                    "test");
  const Program program = compile(fusion, 2);
  auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, 2);
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 1});
  const std::string error = testing::userErrorOf([&] {
    testing::onEachWorld(worlds, [&](int rank, std::unique_ptr<comm::World>& world) {
      Executable executable(program, {device.get(), world.get(), nullptr});
      TensorDesc desc = inputDesc(program, 0, {}, rank, 2);
      desc.alloc = desc.sizes;
      const HostTensor block(DType::F32, desc.sizes);
      const Tensor x = toDevice(*device, device->allocator(), block, desc);
      RunOptions options;
      options.donated = {0};
      executable.run({x}, options).wait();
    });
  });
  EXPECT_NE(error.find("input 0 (%x) is donated, so it must be allocated as inputDesc() says: [3] "
                       "with strides [1], got [2] with [1]"),
            std::string::npos)
      << error;
}

// A rank that comes late reports the error of the rank that failed first.
TEST(DonatedInputsRanks, TensorDonatedTwiceIsAnErrorOnEveryRank) {
  const auto errors = testing::onRanks(2, [&](comm::World& world) {
    const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = 1});
    FusionExecutor executor(parseFusion(kStep, "test"), {device.get(), &world, nullptr});
    std::vector<Argument> inputs;
    for (const TensorDesc& desc : executor.inputDescs()) {
      inputs.emplace_back(
          toDevice(*device, device->allocator(), HostTensor(desc.dtype, desc.sizes), desc));
    }
    RunOptions options;
    options.donated = {2, 3, 2};
    executor.run(inputs, options);
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("input 2 (%w) is donated twice"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace heddle::host::donated_inputs_ranks_cpu_test
