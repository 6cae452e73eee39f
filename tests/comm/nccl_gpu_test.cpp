// NCCL with a thread a GPU, as many ranks as there are GPUs (at most 4).
#include <algorithm>
#include <chrono>

#include "comm/modules.h"
#include "ir/error.h"
#include "tests/comm/cuda_memory.h"
#include "tests/comm/module_symbol.h"
#include "tests/comm/ranks.h"

namespace heddle::comm::conformance::nccl_gpu_test {
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

// Rank 1 gives up instead of posting: rank 0's kernels, on two communicators, wait for it on the
// device until who waits for them looks after the transport.
TEST(NcclThreads, AnAbortEndsWhatWaitsOnTheDevice) {
  std::string reason;
  const auto cuda = CudaRuntime::load(kModule, reason);
  if (cuda == nullptr) GTEST_SKIP() << reason;
  if (cuda->devices < 2) GTEST_SKIP() << "needs 2 GPUs, there is " << cuda->devices;
  const auto entry = moduleSymbol<const NcclModule* (*)()>(kModule, "heddleNcclModule", reason);
  ASSERT_NE(entry, nullptr) << reason;
  expectAllWell(runRanks(makeInProcessWorlds(2), [&](std::unique_ptr<World>& world) {
    const int device = world->rank();
    world = entry()->makeWorld(std::move(world), device);
    DeviceMemory memory(*cuda, device), other(*cuda, device);
    const auto one = world->split({0, 1}), two = world->communicator({0, 1});
    Buffer data(memory, DType::F32, 1000), more(memory, DType::F32, 1000);
    const Operation first{CollectiveKind::Allreduce, data.data(), data.data(), 1000};
    const Operation second{CollectiveKind::Allreduce, more.data(), more.data(), 1000};
    one->post({&first, 1}, memory.stream());  // the peers have met before
    memory.synchronize();
    two->post({&second, 1}, other.stream());
    other.synchronize();
    if (world->rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return world->abort("out of paper");
    }
    one->post({&first, 1}, memory.stream());
    two->post({&second, 1}, other.stream());
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    expectUserError("out of paper", [&] {
      while (std::chrono::steady_clock::now() < deadline) {
        one->probe();
        std::this_thread::yield();
      }
    });
    expectUserError("out of paper", [&] { two->probe(); });
    memory.synchronize();
    other.synchronize();
  }));
}

// NCCL connects ranks in their first call, which waits on the host for a peer that never makes it.
TEST(NcclThreads, AnAbortEndsAFirstPost) {
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
    const auto team = world->split({0, 1});
    Buffer data(memory, DType::F32, 1000);
    if (world->rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return world->abort("out of paper");
    }
    const Operation first{CollectiveKind::Allreduce, data.data(), data.data(), 1000};
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    expectUserError("out of paper", [&] {
      team->post({&first, 1}, memory.stream());
      while (std::chrono::steady_clock::now() < deadline) {
        team->probe();
        std::this_thread::yield();
      }
    });
    expectUserError("out of paper", [&] { team->post({&first, 1}, memory.stream()); });
    memory.synchronize();
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
}  // namespace heddle::comm::conformance::nccl_gpu_test
