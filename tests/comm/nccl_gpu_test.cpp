// NCCL with a thread a GPU, as many ranks as there are GPUs (at most 4).
#include <algorithm>

#include "comm/modules.h"
#include "ir/error.h"
#include "tests/comm/cuda_memory.h"
#include "tests/comm/module_symbol.h"
#include "tests/comm/ranks.h"

namespace heddle::comm::conformance {
namespace {

constexpr const char* kModule = "libheddle_nccl.so";

TEST(NcclThreads, Conforms) {
  std::string reason;
  const auto cuda = CudaRuntime::load(kModule, reason);
  if (cuda == nullptr) GTEST_SKIP() << reason;
  const auto entry = moduleSymbol<const NcclModule* (*)()>(kModule, "heddleNcclModule", reason);
  ASSERT_NE(entry, nullptr) << reason;
  const int ranks = std::min(cuda->devices, 4);
  expectAllWell(runRanks(makeInProcessWorlds(ranks), [&](std::unique_ptr<World>& world) {
    const int device = world->rank();
    world = entry()->makeWorld(std::move(world), device);
    EXPECT_EQ(world->transport(), "nccl");
    DeviceMemory memory(*cuda, device);
    Rank rank{*world, memory, false};
    runEverything(rank);
  }));
}

TEST(NcclThreads, AbsentDeviceIsAnError) {
  std::string reason;
  const auto cuda = CudaRuntime::load(kModule, reason);
  if (cuda == nullptr) GTEST_SKIP() << reason;
  const auto entry = moduleSymbol<const NcclModule* (*)()>(kModule, "heddleNcclModule", reason);
  ASSERT_NE(entry, nullptr) << reason;
  expectUserError("CUDA device", [&] { entry()->makeWorld(makeSingleWorld(), cuda->devices); });
}

}  // namespace
}  // namespace heddle::comm::conformance
