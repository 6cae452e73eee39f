#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/in_process/worlds.h"
#include "comm/modules.h"
#include "tests/comm/cuda_memory.h"
#include "tests/comm/module_symbol.h"
#include "tests/comm/ranks.h"

namespace heddle::comm::conformance {

// Runs NCCL with one thread per GPU. Skips the test if there is no GPU.
class NcclThreads : public ::testing::Test {
 public:
  void SetUp() override {
    constexpr const char* kModule = "libheddle_nccl.so";
    std::string reason;
    cuda_ = CudaRuntime::load(kModule, reason);
    if (cuda_ == nullptr) GTEST_SKIP() << reason;
    const auto entry = moduleSymbol<const NcclModule* (*)()>(kModule, "heddleNcclModule", reason);
    ASSERT_NE(entry, nullptr) << reason;
    nccl_ = entry();
  }

 protected:
  // Runs `body` for each rank on its own thread, with memory on the GPU of the rank.
  void run(int ranks, const std::function<void(World&, DeviceMemory&)>& body) const {
    expectAllWell(runRanks(makeInProcessWorlds(ranks), [&](std::unique_ptr<World>& world) {
      const int device = world->rank();
      world = nccl_->makeWorld(std::move(world), device, nullptr);
      DeviceMemory memory(*cuda_, device);
      body(*world, memory);
    }));
  }

  std::unique_ptr<CudaRuntime> cuda_;
  const NcclModule* nccl_ = nullptr;
};

// The fixture of tests that need two ranks.
class NcclPairs : public NcclThreads {
 public:
  void SetUp() override {
    NcclThreads::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (cuda_->devices < 2) GTEST_SKIP() << "needs 2 GPUs, there is " << cuda_->devices;
  }
};

}  // namespace heddle::comm::conformance
