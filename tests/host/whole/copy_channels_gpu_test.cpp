// Tests the copy channels of a team (comm::Carrier), which use the copy engines of the GPUs. Some
// tests have one rank per GPU, others have several ranks on one GPU.
#include <chrono>
#include <cstdlib>

#include "comm/in_process/worlds.h"
#include "comm/modules.h"
#include "host/device/cuda_module.h"
#include "host/device/load_module.h"
#include "ir/base/error.h"
#include "tests/comm/cuda_memory.h"
#include "tests/comm/ranks.h"

namespace heddle::host::copy_channels_gpu_test {
namespace {

using namespace comm::conformance;
using comm::Carrier;
using comm::CollectiveKind;
using comm::Operation;
using comm::World;
using comm::conformance::Buffer;  // host::Buffer is another type

// This variable must be set before CUDA starts. If streams of two ranks shared a hardware queue of
// the GPU, a wait of one rank would block later work of the other rank.
const bool kQueues = setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0) == 0;

constexpr Carrier kFirst{8, 1}, kSecond{16, 2};

// A copy channel moves this many bytes in three pieces of at most 64 MiB.
constexpr int64_t kPieces = (int64_t{160} << 20) + 24;

std::vector<Case> copyChannelCases(int size) {
  std::vector<Case> cases;
  for (CollectiveKind kind :
       {CollectiveKind::Allreduce, CollectiveKind::Allgather, CollectiveKind::ReduceScatter}) {
    for (DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::I64,
                        DType::I8, DType::Bool}) {
      for (int64_t count : {0, 1, 37, 4096, 50021}) {
        for (bool in_place : {false, true}) {
          if (in_place && kind != CollectiveKind::Allreduce) continue;  // the buffers overlap
          Case c{kind, dtype, ReduceOp::Sum, count, in_place, 3};
          cases.push_back(c);
          if (kind == CollectiveKind::Allgather || dtype == DType::Bool || count > 4096) continue;
          c.op = ReduceOp::Max;  // the values are negative
          cases.push_back(c);
        }
      }
    }
    const int64_t parts = kind == CollectiveKind::Allreduce ? 1 : size;
    cases.push_back({kind, DType::F64, ReduceOp::Sum, kPieces / 8 / parts, false, 1});
    cases.push_back({kind, DType::BF16, ReduceOp::Avg, 50021, false, 1});
  }
  std::erase_if(cases, [](const Case& c) {
    return c.kind == CollectiveKind::Allgather && c.op == ReduceOp::Avg;
  });
  return cases;
}

void runCopyChannels(World& world, Memory& memory) {
  Rank rank{world, memory, true};
  std::vector<std::vector<int>> teams = teamsAlongAxes(world);
  teams.insert(teams.begin(), wholeJob(world));
  for (const std::vector<int>& team : teams) {
    const auto copy_channel = world.split(team, kFirst);
    ASSERT_FALSE(copy_channel->holdsDevice()) << "copy engines do not serve this team";
    for (Case c : copyChannelCases(copy_channel->size())) {
      if (&team != &teams.front() && c.count > 4096) continue;
      runCase(rank, *copy_channel, team, c);
    }
  }
  world.barrier();
}

// Runs two copy channels at once. All ranks post in the same order, and post again before the
// previous operation has completed.
void runBothCopyChannels(World& world, const CudaRuntime& cuda, int device) {
  constexpr int64_t kCount = 3'000'001;
  constexpr int kRounds = 30;
  const std::vector<int> team = wholeJob(world);
  DeviceMemory one(cuda, device), two(cuda, device);
  const auto first = world.split(team, kFirst), second = world.split(team, kSecond);
  Buffer a(one, DType::F32, kCount), b(two, DType::F32, kCount);
  a.fill([&](int64_t i) { return static_cast<double>(i % 7 + world.rank()); });
  b.fill([&](int64_t i) { return static_cast<double>(i % 5); });
  for (int round = 0; round < kRounds; ++round) {
    const Operation most{
        CollectiveKind::Allreduce, a.data(), a.data(), kCount, DType::F32, ReduceOp::Max};
    const Operation mean{
        CollectiveKind::Allreduce, b.data(), b.data(), kCount, DType::F32, ReduceOp::Avg};
    first->post({&most, 1}, one.stream());
    second->post({&mean, 1}, two.stream());
  }
  one.synchronize();
  two.synchronize();
  a.expect("the largest", [&](int64_t i) { return static_cast<double>(i % 7 + world.size() - 1); });
  b.expect("the mean of equals", [&](int64_t i) { return static_cast<double>(i % 5); });
  world.barrier();
}

class CopyChannelsGpu : public ::testing::Test {
 public:
  void SetUp() override {
    ASSERT_TRUE(kQueues);
    std::string why;
    if (cudaDeviceCount(why) == 0) GTEST_SKIP() << why;
    cuda_ = CudaRuntime::load("libheddle_nccl.so", why);
    if (cuda_ == nullptr) GTEST_SKIP() << why;
  }

 protected:
  void onRanks(int ranks, bool one_gpu, const std::function<void(World&, int device)>& body) const {
    expectAllWell(runRanks(comm::makeInProcessWorlds(ranks), [&](std::unique_ptr<World>& world) {
      const int device = one_gpu ? 0 : world->rank();
      world = ncclModule().makeWorld(std::move(world), device, loadedReduce(device));
      body(*world, device);
    }));
  }

  // Loads the kernel before the test, because loading waits for all work of the GPU.
  comm::DeviceReduce loadedReduce(int device) const {
    comm::DeviceReduce reduce = cudaModule().makeReduce(device);
    DeviceMemory memory(*cuda_, device);
    Buffer one(memory, DType::F32, 1);
    const void* sources[] = {one.data()};
    reduce(one.data(), sources, 1, DType::F32, ReduceOp::Sum, memory.stream());
    memory.synchronize();
    return reduce;
  }

  std::unique_ptr<CudaRuntime> cuda_;
};

// Allocating or freeing memory waits for all work of the GPU, including work of other ranks. One
// thread therefore posts for all ranks, after all memory has been allocated.
TEST_F(CopyChannelsGpu, FourRanksOnOneGpuConform) {
  constexpr int kRanks = 4;
  std::vector<std::unique_ptr<World>> worlds(kRanks);
  std::vector<std::unique_ptr<comm::Communicator>> copy_channels(kRanks);
  const std::vector<int> team = {0, 1, 2, 3};
  expectAllWell(runRanks(comm::makeInProcessWorlds(kRanks), [&](std::unique_ptr<World>& world) {
    const auto rank = static_cast<size_t>(world->rank());
    worlds[rank] = ncclModule().makeWorld(std::move(world), 0, cudaModule().makeReduce(0));
    copy_channels[rank] = worlds[rank]->split(team, kFirst);
  }));
  std::vector<std::unique_ptr<DeviceMemory>> memories;
  for (int rank = 0; rank < kRanks; ++rank) {
    memories.push_back(std::make_unique<DeviceMemory>(*cuda_, 0));
  }
  for (const Case& c : copyChannelCases(kRanks)) {
    std::vector<std::unique_ptr<Buffer>> sent, received;
    for (int rank = 0; rank < kRanks; ++rank) {
      const Sizes sizes = sizesOf(c, rank, kRanks);
      Memory& memory = *memories[static_cast<size_t>(rank)];
      sent.push_back(std::make_unique<Buffer>(memory, c.dtype, sizes.sent));
      received.push_back(std::make_unique<Buffer>(memory, c.dtype, sizes.received));
      sent.back()->fill([&](int64_t i) { return contribution(c.dtype, c.op, rank, i, 0); });
    }
    for (size_t rank = 0; rank < kRanks; ++rank) {
      const Buffer& to = c.in_place ? *sent[rank] : *received[rank];
      const Operation op{c.kind, sent[rank]->data(), to.data(), c.count, c.dtype, c.op};
      copy_channels[rank]->post({&op, 1}, memories[rank]->stream());
    }
    for (const auto& memory : memories) memory->synchronize();
    Case once = c;
    once.repeats = 1;
    for (int rank = 0; rank < kRanks; ++rank) {
      const Buffer& to = *(c.in_place ? sent : received)[static_cast<size_t>(rank)];
      const std::string what = describeCase(c, team, rank);
      Expected(once, team, rank).check(what, to.read(what), 0, 0.0);
    }
  }
}

TEST_F(CopyChannelsGpu, RanksWithOneGpuEachConform) {
  if (cuda_->devices < 2) GTEST_SKIP() << "needs 2 GPUs, there is " << cuda_->devices;
  onRanks(std::min(cuda_->devices, 4), false, [&](World& world, int device) {
    DeviceMemory memory(*cuda_, device);
    runCopyChannels(world, memory);
  });
}

TEST_F(CopyChannelsGpu, TwoChannelsRunConcurrently) {
  if (cuda_->devices < 2) GTEST_SKIP() << "needs 2 GPUs, there is " << cuda_->devices;
  onRanks(std::min(cuda_->devices, 4), false,
          [&](World& world, int device) { runBothCopyChannels(world, *cuda_, device); });
}

// Rank 1 aborts, so the streams of rank 0 wait for data that never arrives.
TEST_F(CopyChannelsGpu, AbortReleasesWaitingStreams) {
  if (cuda_->devices < 2) GTEST_SKIP() << "needs 2 GPUs, there is " << cuda_->devices;
  onRanks(2, false, [&](World& world, int device) {
    DeviceMemory memory(*cuda_, device);
    const auto copy_channel = world.split({0, 1}, kFirst);
    Buffer data(memory, DType::F32, 1000);
    const Operation sum{CollectiveKind::Allreduce, data.data(), data.data(), 1000};
    copy_channel->post({&sum, 1}, memory.stream());
    memory.synchronize();
    if (world.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return world.abort("out of paper");
    }
    for (int i = 0; i < 3; ++i) copy_channel->post({&sum, 1}, memory.stream());
    expectAborted("out of paper", *copy_channel, sum, memory);
  });
}

TEST_F(CopyChannelsGpu, OtherCollectivesAreRefused) {
  onRanks(1, true, [&](World& world, int device) {
    DeviceMemory memory(*cuda_, device);
    const auto copy_channel = world.split({0}, kFirst);
    Buffer from(memory, DType::F32, 8), to(memory, DType::F32, 8);
    const Operation exchange{CollectiveKind::AllToAll, from.data(), to.data(), 8};
    expectUserError("over a copy channel", [&] {
      copy_channel->post({&exchange, 1}, memory.stream());
    });
  });
}

}  // namespace
}  // namespace heddle::host::copy_channels_gpu_test
