// Runs the sharded examples with one process per GPU. MPI connects the ranks, and NCCL moves the
// data.
#include <gtest/gtest.h>

#include "host/compile.h"
#include "ir/base/check.h"
#include "tests/host/collective_programs.h"
#include "tests/host/lookup_bits.h"

namespace heddle::host::examples_gpu_mpi_test {
namespace {

using testing::HarnessOptions;
using testing::optionsFor;
using testing::RankOutputs;

// Returns the index of this rank on its machine, which the launcher sets, or 0 without a launcher.
int localRank() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  return rank == nullptr ? 0 : std::atoi(rank);
}

int ranksOfNode() {
  const char* ranks = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  return ranks == nullptr ? 1 : std::atoi(ranks);
}

class ExamplesGpuMpi : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    const int gpus = cudaDeviceCount(why);
    if (gpus == 0) GTEST_SKIP() << why;
    if (gpus < ranksOfNode()) {
      GTEST_SKIP() << ranksOfNode() << " ranks need as many GPUs, there are " << gpus;
    }
    device_ = makeCudaDevice(localRank());
    world_ = makeJobWorld(DeviceKind::Cuda, localRank());
  }

  // Compares the blocks of all outputs on this rank with the unsharded outputs.
  void expectBlocks(const Program& program, const HarnessOptions& options,
                    const std::vector<HostTensor>& whole, const std::string& what) {
    const RankOutputs outputs = testing::runRank(program, *world_, *device_, options);
    std::vector<HostTensor> expected;
    for (size_t i = 0; i < whole.size(); ++i) {
      expected.push_back(localBlock(whole[i], outputs.descs.at(i)));
    }
    testing::expectClose(outputs.locals, expected, what);
  }
  int ranks() const { return world_->size(); }

  std::unique_ptr<Device> device_;
  std::unique_ptr<comm::World> world_;  // destroyed before the device
};

TEST_F(ExamplesGpuMpi, ShardedExamplesLookupsAndCollectivesAreRight) {
  EXPECT_TRUE(ranks() == 1 || world_->transport() == "nccl") << world_->transport();
  testing::expectLookupBits(*world_, *device_);
  const Fusion fusion = testing::fusionExample("tp_mlp.fusion");
  const Program program = compile(fusion, ranks());
  for (int64_t size : {0, 1, 5, 96}) {
    HarnessOptions options = optionsFor(fusion.size_defaults, ranks(), size);
    options.kind = DeviceKind::Cuda;
    options.runs = 3;
    expectBlocks(program, options, testing::expectedOf(fusion, options),
                 fmt::format("tp_mlp, size {}", size));
  }
  for (const auto& setting : testing::settingsOf(ranks())) {
    for (const auto& collective : testing::collectivePrograms()) {
      testing::runCollective(setting, collective, *world_, *device_);
    }
  }
  const Program ring = testing::programExample("ring_allgather.hostir");
  for (int64_t size : {0, 1, 1000}) {
    HarnessOptions options = optionsFor(ring.size_defaults, ranks(), size);
    options.kind = DeviceKind::Cuda;
    options.runs = 3;
    expectBlocks(ring, options, {testing::inputOf(ring, 0, options.sizes, ranks(), options.seed)},
                 fmt::format("ring, size {}", size));
  }
  world_->barrier();
}

}  // namespace
}  // namespace heddle::host::examples_gpu_mpi_test
