// Tests copy channels (comm::Carrier) that fail, that cannot be created, or that ranks destroy at
// different times.
#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/in_process/worlds.h"
#include "comm/nccl/copy_channel_table.h"
#include "comm/nccl/nccl_job.h"
#include "ir/base/check.h"
#include "tests/comm/copy_channels/copy_channel_ranks.h"

namespace heddle::comm::conformance::copy_channel_faults_test {
namespace {

using namespace copy_channels;

constexpr int64_t kCount = 1000;

// A World that does not report failures: only copy channels notify the other ranks.
class DeafWorld : public World {
 public:
  explicit DeafWorld(std::unique_ptr<World> world) : world_(std::move(world)) {}
  ~DeafWorld() override { closeMonitor(); }
  int rank() const override { return world_->rank(); }
  int size() const override { return world_->size(); }
  std::string transport() const override { return world_->transport(); }
  std::vector<std::string> exchange(const std::string& mine) override {
    return world_->exchange(mine);
  }
  std::unique_ptr<Communicator> communicator(const std::vector<int>& members) override {
    return world_->communicator(members);
  }
  void abort(const std::string&) noexcept override {}

 private:
  std::unique_ptr<World> world_;
};

void onDeafRanks(int ranks, const DeviceReduce& reduce, const std::function<void(World&)>& body) {
  expectAllWell(runRanks(makeInProcessWorlds(ranks), [&](std::unique_ptr<World>& world) {
    const int device = world->rank();
    world = heddleNcclModule()->makeWorld(std::make_unique<DeafWorld>(std::move(world)), device,
                                          reduce);
    body(*world);
  }));
}

Operation sumOf(Buffer& buffer) {
  return {CollectiveKind::Allreduce, buffer.data(), buffer.data(), kCount};
}

std::vector<int> among(const std::vector<int>& team, int rank) {
  return std::find(team.begin(), team.end(), rank) == team.end() ? std::vector<int>{} : team;
}

// Rank 2 fails. The stream of rank 0, which waited for data of rank 2, continues and sends invalid
// data to rank 1. Rank 1 has no copy channel with rank 2, and it probes only after its stream has
// finished. Its probe must still report the failure.
TEST(CopyChannelFaults, InvalidDataIsNeverTakenForAResult) {
  fake::setVoid(true);
  onDeafRanks(3, reduceOnStream, [](World& world) {
    StreamMemory memory;
    Buffer data(memory, DType::F32, kCount);
    const Operation sum = sumOf(data);
    const auto outer = world.split(among({0, 2}, world.rank()), kFirst);
    const auto inner = world.split(among({0, 1}, world.rank()), kFirst);
    if (world.rank() == 2) {
      fake::failCopyAfter(0);
      expectUserError("cudaMemcpy", [&] { outer->post({&sum, 1}, memory.stream()); });
      fake::failCopyAfter(-1);
      expectUserError("cudaMemcpy", [&] { outer->post({&sum, 1}, memory.stream()); });
    } else {
      if (outer) outer->post({&sum, 1}, memory.stream());
      inner->post({&sum, 1}, memory.stream());
      memory.synchronize();
      expectUserError("rank 2 has given up: cudaMemcpy", [&] { inner->probe(); });
    }
    world.barrier();
  });
  fake::setVoid(false);
  EXPECT_EQ(fake::counts().blocks, 0);
}

// fault() must report a failure at once, without a thread that polls. Otherwise a rank could take
// invalid data for a result.
TEST(CopyChannelFaults, RankThatGivesUpIsKnownBeforeItsStreamsContinue) {
  for (const Where where : {Where::OneProcess, Where::Processes}) {
    expectAllWell(runRanks(makeInProcessWorlds(2), [&](std::unique_ptr<World>& own) {
      const std::shared_ptr<World> world = std::move(own);
      const int rank = world->rank();
      if (where == Where::Processes) fake::setProcess(1 + rank);
      const std::shared_ptr<nccl::CopyChannelMember> seat = nccl::CopyChannelMember::join(*world);
      const auto job = std::make_shared<nccl::NcclJob>(world);
      EXPECT_EQ(seat->fault(), "");
      world->barrier();
      if (rank == 0) seat->giveUp("out of paper");
      world->barrier();
      if (rank == 0) return;
      EXPECT_EQ(seat->fault(), "rank 0 has given up: out of paper");
      // Processes that have ended need no notification. In the case Processes, the number that
      // getpid() returns to rank 1 belongs to no process, so rank 1 counts as ended.
      EXPECT_EQ(seat->allKnow(), where == Where::Processes);
      job->setCopyChannelMember(seat);
      EXPECT_EQ(job->fault(), "rank 0 has given up: out of paper");
      job->giveUp(job->fault());
      EXPECT_TRUE(seat->allKnow());
      EXPECT_EQ(seat->fault(), "rank 0 has given up: out of paper");
      std::thread monitor([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        job->setFault("rank 0 failed at instruction 7");
      });
      EXPECT_EQ(job->finalFault(), "rank 0 failed at instruction 7");
      monitor.join();
    }));
  }
}

thread_local int sums_left = -1;
void reduceOrFail(void* dst, std::span<const void* const> srcs, int64_t count, DType dtype,
                  ReduceOp op, void* stream) {
  if (sums_left == 0) throwInternalError("kernel", 1, "launch", "no kernel for you");
  --sums_left;
  reduceOnStream(dst, srcs, count, dtype, op, stream);
}

// A group has two collectives. On rank 1 the launch of the second reduction fails while the first
// collective runs.
TEST(CopyChannelFaults, FailureOfASumEndsAllRanks) {
  fake::setVoid(true);
  onDeafRanks(2, reduceOrFail, [](World& world) {
    sums_left = -1;
    StreamMemory memory;
    Buffer a(memory, DType::F32, kCount), b(memory, DType::F32, kCount);
    const std::vector<Operation> both = {sumOf(a), sumOf(b)};
    const auto copy_channel = world.split({0, 1}, kFirst);
    copy_channel->post(both, memory.stream());
    if (world.rank() == 1) {
      sums_left = 1;
      EXPECT_THROW(copy_channel->post(both, memory.stream()), InternalError);
    } else {
      copy_channel->post(both, memory.stream());
    }
    memory.synchronize();
    expectUserError("no kernel for you", [&] { copy_channel->probe(); });
    expectUserError("no kernel for you", [&] { copy_channel->post(both, memory.stream()); });
    world.barrier();
  });
  fake::setVoid(false);
  EXPECT_EQ(fake::counts().blocks, 0);
}

TEST(CopyChannelFaults, RankThatGaveUpGetsNoCommunicators) {
  onRanks(1, [](World& world) {
    StreamMemory memory;
    Buffer data(memory, DType::F32, kCount);
    const Operation sum = sumOf(data);
    const auto copy_channel = world.split({0}, kFirst);
    fake::failCopyAfter(0);
    expectUserError("cudaMemcpy", [&] { copy_channel->post({&sum, 1}, memory.stream()); });
    fake::failCopyAfter(-1);
    expectUserError("cudaMemcpy", [&] { world.split({0}, kSecond); });
  });
  EXPECT_EQ(fake::counts().blocks, 0);
}

// Rank 3 can first access the memory of no other rank, and later of two of the other three ranks.
// Teams with rank 3 must use NCCL, and the other team must get a copy channel.
TEST(CopyChannelFaults, TeamWithoutAccessUsesNccl) {
  for (const Where where : {Where::OneProcess, Where::Processes}) {
    onRanks(
        4,
        [](World& world) {
          fake::failAccessAfter(world.rank() == 3 ? 0 : -1);
          StreamMemory memory;
          Rank rank{world, memory, true};
          const bool lower = world.rank() < 2;
          const std::vector<int> team = lower ? std::vector{0, 1} : std::vector{2, 3};
          const auto copy_channel = world.split(team, kFirst);
          EXPECT_EQ(copy_channel->holdsDevice(), !lower);
          const Case c{CollectiveKind::Allreduce, DType::F32, ReduceOp::Sum, 5000, false, 3};
          if (lower) runCase(rank, *copy_channel, team, c);
          fake::failAccessAfter(world.rank() == 3 ? 2 : -1);
          const auto whole = world.split({0, 1, 2, 3}, kSecond);
          EXPECT_TRUE(whole->holdsDevice());
          world.barrier();
          // 2 blocks belong to the copy channel. The other 6 are flags of the NCCL communicators.
          EXPECT_EQ(fake::counts().blocks, 2 + 6);
          world.barrier();
        },
        where);
    EXPECT_EQ(fake::counts().blocks, 0);
    EXPECT_EQ(fake::counts().nccl, 0);
    EXPECT_EQ(fake::counts().opened, 0);
    EXPECT_EQ(fake::counts().freed_open, 0);
  }
}

// Rank 0 destroys its copy channel long before the other ranks do.
TEST(CopyChannelFaults, BlockStaysUntilOtherRanksHaveClosedIt) {
  onRanks(
      3,
      [](World& world) {
        StreamMemory memory;
        Rank rank{world, memory, true};
        const std::vector<int> team = {0, 1, 2};
        const Case c{CollectiveKind::Allgather, DType::F32, ReduceOp::Sum, 5000, false, 1};
        auto copy_channel = world.split(team, kFirst);
        runCase(rank, *copy_channel, team, c);
        if (world.rank() == 0) copy_channel.reset();
        world.barrier();
        EXPECT_EQ(fake::counts().blocks, 3);
        world.barrier();
        copy_channel.reset();
        world.barrier();
        copy_channel = world.split(team, kSecond);
        runCase(rank, *copy_channel, team, c);
        world.barrier();
        EXPECT_EQ(fake::counts().blocks, 3);
        world.barrier();
      },
      Where::Processes);
  EXPECT_EQ(fake::counts().blocks, 0);
  EXPECT_EQ(fake::counts().opened, 0);
  EXPECT_EQ(fake::counts().freed_open, 0);
}

// Many threads abort at the same time. Each NCCL communicator is aborted once, and all errors give
// the same reason.
TEST(CopyChannelFaults, CopyChannelsAndNcclEndTogether) {
  const fake::Counts before = fake::counts();
  fake::setVoid(true);
  onRanks(2, [](World& world) {
    StreamMemory memory;
    Buffer data(memory, DType::F32, kCount);
    const Operation sum = sumOf(data);
    const std::vector<int> team = {0, 1};
    const auto first = world.split(team, kFirst), second = world.split(team, kSecond);
    const auto nccl = world.split(team, {}), other = world.split(team, Carrier{4, 0});
    world.barrier();
    if (world.rank() == 0) {
      first->post({&sum, 1}, memory.stream());
    } else {
      world.abort("out of paper");
    }
    std::vector<std::thread> threads;
    for (Communicator* each : {first.get(), second.get(), nccl.get(), other.get()}) {
      threads.emplace_back([each] {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        expectUserError("out of paper", [&] {
          while (std::chrono::steady_clock::now() < deadline) each->probe();
        });
      });
    }
    for (std::thread& thread : threads) thread.join();
    memory.synchronize();
  });
  fake::setVoid(false);
  const fake::Counts after = fake::counts();
  // Per rank: the communicators `nccl` and `other`, and the one from which they are split.
  EXPECT_EQ(after.aborts - before.aborts, 2 * 3);
  EXPECT_EQ(after.bad_aborts, 0);
  EXPECT_EQ(after.nccl, 0);
  EXPECT_EQ(after.blocks, 0);
}

}  // namespace
}  // namespace heddle::comm::conformance::copy_channel_faults_test
