// Tests NCCL with one thread per GPU. There are as many ranks as GPUs, at most 4.
#include <algorithm>
#include <chrono>

#include "comm/in_process/worlds.h"
#include "ir/base/error.h"
#include "tests/comm/nccl_threads.h"

namespace heddle::comm::conformance::nccl_gpu_test {
namespace {

TEST_F(NcclThreads, Conforms) {
  run(std::min(cuda_->devices, 4), [](World& world, DeviceMemory& memory) {
    EXPECT_EQ(world.transport(), "nccl");
    Rank rank{world, memory, false};
    runEverything(rank);
  });
}

// Rank 1 aborts instead of posting. On the GPU of rank 0, kernels of two communicators wait for
// rank 1. They must end when the host thread of rank 0 calls probe().
TEST_F(NcclPairs, AbortEndsKernelsThatWait) {
  run(2, [this](World& world, DeviceMemory& memory) {
    DeviceMemory other(*cuda_, world.rank());
    const auto one = world.split({0, 1}), two = world.communicator({0, 1});
    Buffer data(memory, DType::F32, 1000), more(memory, DType::F32, 1000);
    const Operation first{CollectiveKind::Allreduce, data.data(), data.data(), 1000};
    const Operation second{CollectiveKind::Allreduce, more.data(), more.data(), 1000};
    one->post({&first, 1}, memory.stream());  // afterwards the ranks are connected
    memory.synchronize();
    two->post({&second, 1}, other.stream());
    other.synchronize();
    if (world.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return world.abort("out of paper");
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
  });
}

// NCCL connects ranks in their first call. Rank 1 never makes this call, so the call of rank 0
// waits on the host.
TEST_F(NcclPairs, AbortEndsAFirstPost) {
  run(2, [](World& world, DeviceMemory& memory) {
    const auto team = world.split({0, 1});
    Buffer data(memory, DType::F32, 1000);
    if (world.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return world.abort("out of paper");
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
  });
}

TEST_F(NcclThreads, MissingDeviceIsRejected) {
  expectUserError("CUDA device",
                  [&] { nccl_->makeWorld(makeSingleWorld(), cuda_->devices, nullptr); });
}

}  // namespace
}  // namespace heddle::comm::conformance::nccl_gpu_test
