// Runs every example on one GPU. Sharded examples also run on several ranks of one GPU, and with
// NCCL between threads on two GPUs.
#include <gtest/gtest.h>

#include "comm/in_process/worlds.h"
#include "host/compile.h"
#include "host/device/load_module.h"
#include "host/job/worlds.h"
#include "ir/base/check.h"
#include "tests/host/example_files.h"
#include "tests/host/whole/loop_program.h"

namespace heddle::host::examples_gpu_test {
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

class ExamplesGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    gpus_ = cudaDeviceCount(why);
    if (gpus_ == 0) GTEST_SKIP() << why;
  }
  static HarnessOptions onGpu(HarnessOptions options) {
    options.kind = DeviceKind::Cuda;
    return options;
  }
  static void expectRight(const Fusion& fusion, const Program& program,
                          const HarnessOptions& options, const std::string& what) {
    expectClose(runProgram(program, onGpu(options)), expectedOf(fusion, options), what);
  }
  int gpus_ = 0;
};

TEST_F(ExamplesGpu, FusionsAreRightAtAnySize) {
  for (const char* name : kFusionExamples) {
    const Fusion fusion = fusionExample(name);
    const Program program = compile(fusion, 1);
    for (int64_t size : {0, 1, 7, 64}) {
      expectRight(fusion, program, optionsFor(fusion.size_defaults, 1, size),
                  fmt::format("{} at {}", name, size));
    }
  }
}

TEST_F(ExamplesGpu, PrintedProgramsGiveTheSameResults) {
  for (const char* name : kFusionExamples) {
    const Fusion fusion = fusionExample(name);
    const Program again = printedAndParsed(compile(fusion, 1));
    for (int64_t size : {0, 1, 13}) {
      expectRight(fusion, again, optionsFor(fusion.size_defaults, 1, size),
                  fmt::format("{} printed, size {}", name, size));
    }
  }
}

TEST_F(ExamplesGpu, TpMlpIsRightOnSeveralRanks) {
  const Fusion fusion = fusionExample("tp_mlp.fusion");
  for (int ranks : {2, 3}) {
    const Program program = printedAndParsed(compile(fusion, ranks));
    for (int64_t size : {0, 1, 5, 48}) {
      HarnessOptions options = optionsFor(fusion.size_defaults, ranks, size);
      options.runs = 3;
      expectRight(fusion, program, options, fmt::format("{} ranks, size {}", ranks, size));
    }
  }
}

// The moves include sends, and gathers and scatters with different roots.
TEST_F(ExamplesGpu, MovesBetweenMeshesAreRight) {
  for (const testing::ShardedExample& example : testing::shardedExamples()) {
    const std::string name = example.name;
    const bool moves =
        name.starts_with("between") || name.starts_with("pipeline") || name.starts_with("all_resh");
    if (!moves) continue;
    const Fusion fusion = fusionExample(name);
    const Program program = compile(fusion, 4);
    std::vector<SizeBindings> all = example.sizes;
    all.emplace_back();
    for (const SizeBindings& sizes : all) {
      HarnessOptions options;
      options.ranks = 4;
      options.runs = 2;
      options.sizes = testing::defaultSizes(fusion.size_defaults);
      for (const auto& [symbol, size] : sizes) options.sizes[symbol] = size;
      expectRight(fusion, program, options, name);
    }
  }
}

TEST_F(ExamplesGpu, RingAllgatherIsRightOnSeveralRanks) {
  const Program program = programExample("ring_allgather.hostir");
  for (int ranks : {1, 2, 3}) {
    for (int64_t size : {0, 1, 64, 100'000}) {
      testing::expectRing(program, onGpu(optionsFor(program.size_defaults, ranks, size)),
                          fmt::format("{} ranks, size {}", ranks, size));
    }
  }
}

TEST_F(ExamplesGpu, UnevenExchangeReturnsEveryElement) {
  const Program program = programExample("uneven_exchange.hostir");
  for (int ranks : {1, 2, 3, 4}) {
    HarnessOptions options = optionsFor(program.size_defaults, ranks, 33);
    options.runs = 3;
    testing::expectExchange(program, onGpu(options), fmt::format("{} ranks", ranks));
  }
}

TEST_F(ExamplesGpu, ExpertsAreRightOnSeveralRanks) {
  const Fusion reference = fusionExample("moe_dispatch_combine.fusion");
  const Program program = programExample("moe_dispatch_combine.hostir");
  for (int ranks : {1, 2, 3, 4}) {
    for (const SizeBindings& sizes : testing::expertSizes()) {
      HarnessOptions options;
      options.ranks = ranks;
      testing::expectExperts(program, reference, onGpu(options), sizes,
                             fmt::format("{} ranks", ranks));
    }
  }
}

TEST_F(ExamplesGpu, LoopAddsNine) {
  const Program program = programExample("in_place_loop.hostir");
  for (int64_t size : {0, 1, 1000, 1'000'003}) {
    testing::expectLoop(printedAndParsed(program),
                        onGpu(optionsFor(program.size_defaults, 1, size)),
                        fmt::format("size {}", size));
  }
}

// The caller's streams are CUDA streams, because a Stream of this device is a cudaStream_t.
TEST_F(ExamplesGpu, StreamsAndThreadsShareTheLoopProgram) {
  testing::checkLoopProgram(*makeCudaDevice(0));
}

// Runs on one rank per GPU, with NCCL between in-process ranks. Returns the assembled outputs.
std::vector<HostTensor> runWithNccl(const Program& program, const HarnessOptions& options) {
  auto worlds = comm::makeInProcessWorlds(options.ranks);
  std::vector<testing::RankOutputs> ranks(worlds.size());
  testing::onEachWorld(worlds, [&](int rank, std::unique_ptr<comm::World>& world) {
    world = makeNcclWorld(std::move(world), rank);
    const std::unique_ptr<Device> device = makeCudaDevice(rank);
    ranks[static_cast<size_t>(rank)] = testing::runRank(program, *world, *device, options);
    world->barrier();
  });
  return testing::assemble(ranks);
}

TEST_F(ExamplesGpu, NcclRanksAsThreadsAreRight) {
  if (gpus_ < 2) GTEST_SKIP() << "needs 2 GPUs, there is " << gpus_;
  const Fusion fusion = fusionExample("tp_mlp.fusion");
  const Program program = compile(fusion, 2);
  for (int64_t size : {0, 1, 5, 96}) {
    HarnessOptions options = onGpu(optionsFor(fusion.size_defaults, 2, size));
    options.runs = 3;
    expectClose(runWithNccl(program, options), expectedOf(fusion, options),
                fmt::format("size {}", size));
  }
  // Each stage of the pipeline is on one GPU, so values are sent between the GPUs.
  const Fusion stages = fusionExample("pipeline_2stage.fusion");
  const Program sent = compile(stages, 2);
  for (int64_t size : {0, 7, 96}) {
    HarnessOptions options = onGpu(optionsFor(stages.size_defaults, 2, size));
    options.runs = 3;
    expectClose(runWithNccl(sent, options), expectedOf(stages, options),
                fmt::format("pipeline, size {}", size));
  }
  const Program ring = programExample("ring_allgather.hostir");
  const HarnessOptions options = onGpu(optionsFor(ring.size_defaults, 2, 1000));
  const HostTensor whole = testing::inputOf(ring, 0, options.sizes, 2, options.seed);
  EXPECT_EQ(testing::relativeError(runWithNccl(ring, options).at(0), whole), 0);
}

}  // namespace
}  // namespace heddle::host::examples_gpu_test
