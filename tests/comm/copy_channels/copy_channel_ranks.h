#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/in_process/worlds.h"
#include "comm/modules.h"
#include "tests/comm/conformance/conformance.h"
#include "tests/comm/copy_channels/fake_cuda.h"
#include "tests/comm/ranks.h"

extern "C" const heddle::comm::NcclModule* heddleNcclModule();

// Runs ranks on the fake GPUs of fake_cuda.cpp.
namespace heddle::comm::conformance::copy_channels {

constexpr Carrier kFirst{8, 1}, kSecond{8, 2};

class StreamMemory : public HostMemory {
 public:
  StreamMemory() { cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); }
  ~StreamMemory() override { cudaStreamDestroy(stream_); }
  void* stream() override { return stream_; }
  void synchronize() override { cudaStreamSynchronize(stream_); }

 private:
  cudaStream_t stream_ = nullptr;
};

inline void reduceOnStream(void* dst, std::span<const void* const> srcs, int64_t count, DType dtype,
                           ReduceOp op, void* stream) {
  const std::vector<const void*> all(srcs.begin(), srcs.end());
  fake::launch(static_cast<cudaStream_t>(stream), [=] {
    if (count > 0 && !fake::isVoid()) reduceOnHost(dst, all, count, dtype, op);
  });
}

// Ranks are always threads. OneProcess: getpid() gives all ranks the same number. Processes:
// getpid() gives each rank its own number, as if it were a process.
enum class Where { OneProcess, Processes };

inline void onRanks(int ranks, const std::function<void(World&)>& body,
                    Where where = Where::OneProcess, const DeviceReduce& reduce = reduceOnStream) {
  expectAllWell(runRanks(makeInProcessWorlds(ranks), [&](std::unique_ptr<World>& world) {
    const int device = world->rank();
    if (where == Where::Processes) fake::setProcess(1 + device);
    world = heddleNcclModule()->makeWorld(std::move(world), device, reduce);
    body(*world);
  }));
}

}  // namespace heddle::comm::conformance::copy_channels
