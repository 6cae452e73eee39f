// Tests programs with every collective on several ranks of one GPU.
#include "comm/in_process/worlds.h"
#include "comm/modules.h"
#include "host/device/load_module.h"
#include "host/job/worlds.h"
#include "tests/host/collective_programs.h"
#include "tests/host/lookup_bits.h"
#include "tests/host/rank_harness.h"

namespace heddle::host::collectives_gpu_test {
namespace {

TEST(CollectivesGpu, EveryProgramIsRightOnOneToFourRanks) {
  std::string why;
  if (cudaDeviceCount(why) == 0) GTEST_SKIP() << why;
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (const auto& setting : testing::settingsOf(ranks)) {
      auto worlds = makeInProcessWorldsFor(DeviceKind::Cuda, ranks);
      testing::onEachWorld(worlds, [&](int, std::unique_ptr<comm::World>& world) {
        const auto device = makeCudaDevice(0);
        for (const auto& collective : testing::collectivePrograms()) {
          testing::runCollective(setting, collective, *world, *device);
        }
      });
    }
  }
}

TEST(CollectivesGpu, LookupsAlongAShardedAxisKeepEveryBit) {
  std::string why;
  if (cudaDeviceCount(why) == 0) GTEST_SKIP() << why;
  for (int ranks = 2; ranks <= 4; ++ranks) {
    auto worlds = makeInProcessWorldsFor(DeviceKind::Cuda, ranks);
    testing::onEachWorld(worlds, [&](int, std::unique_ptr<comm::World>& world) {
      const auto device = makeCudaDevice(0);
      testing::expectLookupBits(*world, *device);
    });
  }
}

// If counts differ, NCCL hangs. Ranks therefore compare their collectives before the first run with
// new sizes. Before each all-to-all-v they also compare its counts.
TEST(CollectivesGpu, DifferentCountsEndTheNcclJob) {
  std::string why;
  const int gpus = cudaDeviceCount(why);
  if (gpus < 2) GTEST_SKIP() << "needs 2 GPUs, there are " << gpus;
  const auto errorsOf = [&](const std::string& text, const auto& inputs) {
    auto worlds = comm::makeInProcessWorlds(2);
    std::vector<std::string> errors(2);
    const auto onRank = [&](int rank, std::unique_ptr<comm::World>& world) {
      world = makeNcclWorld(std::move(world), rank);
      const auto device = makeCudaDevice(rank);
      Executable executable(testing::programOf(text), {device.get(), world.get()});
      errors[static_cast<size_t>(rank)] =
          testing::userErrorOf([&] { executable.run(inputs(*device, rank)).wait(); });
    };
    EXPECT_THROW(testing::onEachWorld(worlds, onRank), UserError) << "the job is over";
    return errors;
  };
  const auto sums = errorsOf(R"(
mesh @m = [x=ranks]
program sum(%x: f32[n]) -> (%y) with n = 64 {
  slot %y: f32[n]
  %y = allocate
  $t = communicate allreduce %x -> %y team=@m[x] op=sum
  wait $t
}
)",
                             [](Device& device, int rank) -> std::vector<Argument> {
                               const int64_t n = rank == 0 ? 64 : 128;
                               const std::vector<float> ones(static_cast<size_t>(n), 1);
                               return {testing::deviceFloats(device, ones, {n})};
                             });
  for (const std::string& error : sums) {
    EXPECT_NE(error.find("posts allreduce(sum) of 64 f32"), std::string::npos) << error;
    EXPECT_NE(error.find("posts allreduce(sum) of 128 f32"), std::string::npos) << error;
  }
  const auto exchanges = errorsOf(
      "mesh @m = [x=2]\nprogram p(%x: f32[12], %s: i64[2], %r: i64[2]) -> (%y) {\n" +
          testing::replacedIn(testing::replacedIn(testing::kUnevenExchange, "TEAM", "@m[x]"),
                              "SIZE", "2") +
          "}\n",
      [](Device& device, int rank) -> std::vector<Argument> {
        const Tensor x = testing::deviceFloats(device, std::vector<float>(12, 1), {12});
        return {x,
                testing::countsOn(
                    device, rank == 0 ? std::vector<int64_t>{1, 5} : std::vector<int64_t>{3, 0}),
                testing::countsOn(
                    device, rank == 0 ? std::vector<int64_t>{1, 3} : std::vector<int64_t>{4, 0})};
      });
  for (const std::string& error : exchanges) {
    EXPECT_NE(error.find("rank 0 sends 5 elements to rank 1, which expects 4 from it"),
              std::string::npos)
        << error;
  }
}

}  // namespace
}  // namespace heddle::host::collectives_gpu_test
