#include "comm/modules.h"
#include "tests/comm/big_cases.h"
#include "tests/comm/cuda_memory.h"
#include "tests/comm/module_symbol.h"
#include "tests/comm/ranks.h"

namespace heddle::comm::conformance::nccl_gpu_big_test {
namespace {

TEST(NcclBig, CountsBeyondInt) {
  constexpr const char* kModule = "libheddle_nccl.so";
  std::string reason;
  const auto cuda = CudaRuntime::load(kModule, reason);
  if (cuda == nullptr) GTEST_SKIP() << reason;
  if (cuda->devices < 2) GTEST_SKIP() << "needs 2 GPUs, there is " << cuda->devices;
  const auto entry = moduleSymbol<const NcclModule* (*)()>(kModule, "heddleNcclModule", reason);
  ASSERT_NE(entry, nullptr) << reason;
  expectAllWell(runRanks(makeInProcessWorlds(2), [&](std::unique_ptr<World>& world) {
    const int device = world->rank();
    world = entry()->makeWorld(std::move(world), device);
    DeviceMemory memory(*cuda, device);
    Rank rank{*world, memory, false};
    runBig(rank);
  }));
}

}  // namespace
}  // namespace heddle::comm::conformance::nccl_gpu_big_test
