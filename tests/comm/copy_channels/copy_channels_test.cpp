// Tests the copy channels of a team (comm::Carrier) with up to 8 ranks, on a fake CUDA of host
// memory and threads. Checks the order of the ranks' copies and the positions of the copied parts.
// tests/host/whole/copy_channels_gpu_test.cpp tests them on GPUs.
#include <chrono>
#include <thread>

#include "tests/comm/copy_channels/copy_channel_ranks.h"

namespace heddle::comm::conformance::copy_channels_test {
namespace {

using namespace copy_channels;

std::vector<Case> copyChannelCases(int ranks) {
  const std::vector<DType> few = {DType::BF16, DType::I64};
  const std::vector<DType> all = {DType::F32, DType::BF16, DType::I8, DType::I64};
  std::vector<Case> cases;
  for (CollectiveKind kind :
       {CollectiveKind::Allreduce, CollectiveKind::Allgather, CollectiveKind::ReduceScatter}) {
    for (DType dtype : ranks == 3 ? all : few) {
      for (int64_t count : {0, 1, 3, 37, 4096}) {
        cases.push_back({kind, dtype, ReduceOp::Sum, count, false, 3});
        if (kind == CollectiveKind::Allgather) continue;
        cases.push_back({kind, dtype, ReduceOp::Max, count, false, 2});
        if (kind == CollectiveKind::Allreduce) {
          cases.push_back({kind, dtype, ReduceOp::Sum, count, true, 2});
        }
      }
    }
    // The count is larger than one piece of a copy channel (HEDDLE_COPY_CHANNEL_PIECE_BYTES), and
    // not a multiple of it.
    cases.push_back({kind, DType::I64, ReduceOp::Sum, 29'003, false, 1});
  }
  return cases;
}

TEST(CopyChannels, Conform) {
  for (int ranks : {1, 2, 3, 8}) {
    onRanks(ranks, [&](World& world) {
      StreamMemory memory;
      Rank rank{world, memory, true};
      std::vector<std::vector<int>> teams = teamsAlongAxes(world);
      teams.insert(teams.begin(), wholeJob(world));
      for (const std::vector<int>& team : teams) {
        const auto copy_channel = world.split(team, kFirst);
        ASSERT_FALSE(copy_channel->holdsDevice());
        for (const Case& c : copyChannelCases(ranks)) runCase(rank, *copy_channel, team, c);
      }
    });
  }
}

// Returns element i of rank `owner` in round `round`. Sums of 8 elements are exact.
float number(int owner, int round, int64_t i) {
  return static_cast<float>((i * 7 + round * 13 + owner * 5) % 101);
}

// Uses two copy channels on alternating streams without waits in between. Every round has its own
// buffers, so data that arrives too early or too late is detected.
void runUnderWay(World& world) {
  constexpr int kRounds = 60;
  constexpr int64_t kPart = 600;
  const int ranks = world.size(), me = world.rank();
  const int64_t count = kPart * ranks;
  StreamMemory one, two;
  const std::vector<int> team = wholeJob(world);
  const auto first = world.split(team, kFirst), second = world.split(team, kSecond);
  std::vector<std::vector<float>> in(kRounds), sums(kRounds), parts(kRounds);
  for (int r = 0; r < kRounds; ++r) {
    const auto at = static_cast<size_t>(r);
    for (int64_t i = 0; i < count; ++i) in[at].push_back(number(me, r, i));
    sums[at].resize(static_cast<size_t>(count));
    parts[at].resize(static_cast<size_t>(kPart));
    const Operation all{CollectiveKind::Allreduce, in[at].data(), sums[at].data(), count};
    const Operation mine{CollectiveKind::ReduceScatter, in[at].data(), parts[at].data(), kPart};
    first->post({&all, 1}, (r % 3 == 0 ? two : one).stream());
    second->post({&mine, 1}, (r % 5 == 0 ? one : two).stream());
  }
  one.synchronize();
  two.synchronize();
  for (int r = 0; r < kRounds; ++r) {
    const auto at = static_cast<size_t>(r);
    for (int64_t i = 0; i < count; ++i) {
      float sum = 0;
      for (int owner = 0; owner < ranks; ++owner) sum += number(owner, r, i);
      ASSERT_EQ(sums[at][static_cast<size_t>(i)], sum) << "round " << r << ", element " << i;
      if (i / kPart != me) continue;
      ASSERT_EQ(parts[at][static_cast<size_t>(i % kPart)], sum) << "round " << r;
    }
  }
}

TEST(CopyChannels, TwoChannelsRunAtTheSameTime) {
  for (int ranks : {2, 3, 5}) onRanks(ranks, runUnderWay);
  onRanks(3, runUnderWay, Where::Processes);
}

// Rank 1 gives up. The streams of the other ranks wait for data that never arrives. One of these
// ranks has posted more than the other.
TEST(CopyChannels, AbortEndsWaitingStreams) {
  onRanks(3, [](World& world) {
    StreamMemory memory;
    const auto copy_channel = world.split({0, 1, 2}, kFirst);
    Buffer data(memory, DType::F32, 1000);
    const Operation sum{CollectiveKind::Allreduce, data.data(), data.data(), 1000};
    copy_channel->post({&sum, 1}, memory.stream());
    memory.synchronize();
    world.barrier();
    fake::setVoid(true);
    if (world.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return world.abort("out of paper");
    }
    for (int i = 0; i < 3 + 2 * world.rank(); ++i) copy_channel->post({&sum, 1}, memory.stream());
    expectAborted("out of paper", *copy_channel, sum, memory);
  });
  fake::setVoid(false);
}

TEST(CopyChannels, OtherKindsAreRejected) {
  onRanks(2, [](World& world) {
    StreamMemory memory;
    const auto copy_channel = world.split({0, 1}, kFirst);
    Buffer from(memory, DType::F32, 8), to(memory, DType::F32, 8);
    const Operation exchange{CollectiveKind::AllToAll, from.data(), to.data(), 4};
    expectUserError("over a copy channel", [&] {
      copy_channel->post({&exchange, 1}, memory.stream());
    });
  });
}

}  // namespace
}  // namespace heddle::comm::conformance::copy_channels_test
