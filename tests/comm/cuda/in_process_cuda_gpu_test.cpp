// Tests the copies and events of several ranks on one GPU. The transport gets its reduction from
// the caller; here the reduction runs on the host.
#include "comm/modules.h"
#include "ir/base/error.h"
#include "tests/comm/cuda_memory.h"
#include "tests/comm/module_symbol.h"
#include "tests/comm/ranks.h"

namespace heddle::comm::conformance::in_process_cuda_gpu_test {
namespace {

constexpr const char* kModule = "libheddle_cuda.so";

class InProcessCudaGpu : public ::testing::Test {
 public:
  void SetUp() override {
    std::string reason;
    cuda_ = CudaRuntime::load(kModule, reason);
    if (cuda_ == nullptr) GTEST_SKIP() << reason;
    using Entry = MakeInProcessCudaWorlds (*)();
    const auto entry = moduleSymbol<Entry>(kModule, "heddleInProcessCudaWorlds", reason);
    ASSERT_NE(entry, nullptr) << reason;
    make_ = entry();
  }

 protected:
  // Copies all sources to host memory, next to each other, and reduces them there. The memory
  // belongs to the thread of the rank, which reuses it.
  void reduceThroughHost(void* dst, std::span<const void* const> srcs, int64_t count, DType dtype,
                         ReduceOp op, void* stream) const {
    const size_t bytes = static_cast<size_t>(count * sizeOf(dtype));
    thread_local Staging staging(*cuda_);
    unsigned char* host = staging.get(bytes * srcs.size());
    const auto copy = [&](void* to, const void* from) {
      CudaRuntime::check("cudaMemcpyAsync",
                         cuda_->copyAsync(to, from, bytes, CudaRuntime::kAnyDirection, stream));
    };
    const auto wait = [&] {
      CudaRuntime::check("cudaStreamSynchronize", cuda_->synchronize(stream));
    };
    std::vector<const void*> sources;
    for (size_t i = 0; i < srcs.size(); ++i) {
      copy(host + i * bytes, srcs[i]);
      sources.push_back(host + i * bytes);
    }
    wait();
    reduceOnHost(host, sources, count, dtype, op);
    copy(dst, host);
    wait();
  }

  std::vector<std::unique_ptr<World>> makeWorlds(int size) const {
    return make_(size, 0,
                 [this](void* dst, std::span<const void* const> srcs, int64_t count, DType dtype,
                        ReduceOp op,
                        void* stream) { reduceThroughHost(dst, srcs, count, dtype, op, stream); });
  }

  std::unique_ptr<CudaRuntime> cuda_;
  MakeInProcessCudaWorlds make_ = nullptr;
};

class InProcessCudaGpuRanks : public InProcessCudaGpu, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, InProcessCudaGpuRanks, ::testing::Values(1, 2, 3, 4));

TEST_P(InProcessCudaGpuRanks, Conforms) {
  expectAllWell(runRanks(makeWorlds(GetParam()), [&](std::unique_ptr<World>& world) {
    DeviceMemory memory(*cuda_, 0);
    Rank rank{*world, memory};
    runEverything(rank);
  }));
}

// The stream writes the inputs late and then uses the result. The host waits for neither.
TEST_F(InProcessCudaGpu, StreamsOrderOperationsWithOtherWork) {
  constexpr int64_t kCount = 1000;
  constexpr size_t kBallast = size_t{256} << 20;
  expectAllWell(runRanks(makeWorlds(3), [&](std::unique_ptr<World>& world) {
    DeviceMemory memory(*cuda_, 0);
    const int me = world->rank();
    const auto comm = world->communicator({0, 1, 2});
    Buffer prepared(memory, DType::F32, kCount), send(memory, DType::F32, kCount);
    Buffer recv(memory, DType::F32, 3 * kCount), used(memory, DType::F32, 3 * kCount);
    void* ballast = memory.allocate(kBallast);
    const auto later = [&](void* to, const void* from, int64_t count) {
      CudaRuntime::check("cudaMemcpyAsync",
                         cuda_->copyAsync(to, from, count * sizeof(float),
                                          CudaRuntime::kAnyDirection, memory.stream()));
    };
    for (int round = 0; round < 10; ++round) {
      prepared.fill([&](int64_t i) { return me * 1000.0 + i + round; });
      for (int i = 0; i < (me == round % 3 ? 8 : 0); ++i) {
        cuda_->setAsync(ballast, i, kBallast, memory.stream());
      }
      later(send.data(), prepared.data(), kCount);
      const Operation op{CollectiveKind::Allgather, send.data(), recv.data(), kCount};
      comm->post({&op, 1}, memory.stream());
      later(used.data(), recv.data(), 3 * kCount);
      memory.synchronize();
      used.expect("late data",
                  [&](int64_t i) { return (i / kCount) * 1000.0 + i % kCount + round; });
    }
    memory.release(ballast);
  }));
}

TEST_F(InProcessCudaGpu, MismatchAndAbortEndThePost) {
  const auto post = [&](World& world, const std::function<void(int, Operation&)>& change) {
    DeviceMemory memory(*cuda_, 0);
    const auto comm = world.communicator({0, 1});
    Buffer data(memory, DType::F32, 16);
    Operation op{CollectiveKind::Allreduce, data.data(), data.data(), 16};
    change(world.rank(), op);
    comm->post({&op, 1}, memory.stream());
  };
  auto errors = runRanks(makeWorlds(2), [&](std::unique_ptr<World>& world) {
    post(*world, [](int rank, Operation& op) { op.count = rank == 0 ? 16 : 8; });
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("of 16 f32"), std::string::npos) << error;
    EXPECT_NE(error.find("of 8 f32"), std::string::npos) << error;
  }
  errors = runRanks(makeWorlds(2), [&](std::unique_ptr<World>& world) {
    post(*world, [&](int rank, Operation&) {
      if (rank == 1) world->abort("out of paper");
    });
  });
  EXPECT_NE(errors[0].find("rank 1 aborted: out of paper"), std::string::npos) << errors[0];
}

}  // namespace
}  // namespace heddle::comm::conformance::in_process_cuda_gpu_test
