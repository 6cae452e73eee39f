#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "comm/in_process/worlds.h"
#include "host/device/cpu/cpu_device.h"
#include "host/device/device.h"
#include "ir/base/check.h"

namespace heddle::host::cpu_communicate_cpu_test {
namespace {

// Runs one of two in-process ranks with two streams each. Both streams post collectives to the same
// communicator.
void ringRank(comm::World& world, std::optional<uint64_t> seed, std::vector<float>& sums) {
  CpuOptions options;
  options.threads = 1;
  options.adversarial_seed = seed;
  auto device = makeCpuDevice(options);
  auto communicator = world.communicator({0, 1});
  Stream streams[2] = {device->createStream(), device->createStream()};
  std::vector<float> values(20);
  ErrorSink errors;
  for (size_t i = 0; i < values.size(); ++i) {
    float* value = &values[i];
    Stream stream = streams[i % 2];
    const float mine = static_cast<float>(i + 1) * static_cast<float>(world.rank() + 1);
    device->hostTask([value, mine] { *value = mine; }, stream, {&errors, 0});
    comm::Operation operation;
    operation.send = value;
    operation.recv = value;
    operation.count = 1;
    device->communicate(*communicator, std::span(&operation, 1), stream, {&errors, 1});
  }
  for (Stream stream : streams) device->destroyStream(stream);
  errors.rethrow();
  sums = values;
}

TEST(CpuCommunicate, CollectivesOnTwoStreamsAreRightUnderEverySeed) {
  std::vector<std::optional<uint64_t>> seeds = {std::nullopt, 0, 1, 2, 3, 4, 5};
  for (const auto& seed : seeds) {
    auto worlds = comm::makeInProcessWorlds(2);
    std::vector<float> sums[2];
    std::thread other(
        [&] { ringRank(*worlds[1], seed ? std::optional(*seed + 100) : std::nullopt, sums[1]); });
    ringRank(*worlds[0], seed, sums[0]);
    other.join();
    EXPECT_EQ(sums[0], sums[1]);
    for (size_t i = 0; i < sums[0].size(); ++i)
      EXPECT_EQ(sums[0][i], 3.0F * static_cast<float>(i + 1));
  }
}

// Rank 0 fails before its collective. Neither rank may wait forever.
TEST(CpuCommunicate, AbortEndsTheWaitOfBothRanks) {
  auto worlds = comm::makeInProcessWorlds(2);
  ErrorSink errors[2];
  const auto rank = [&](int r) {
    auto device = makeCpuDevice({1, std::nullopt});
    auto communicator = worlds[r]->communicator({0, 1});
    float value = 1;
    comm::Operation operation;
    operation.send = operation.recv = &value;
    operation.count = 1;
    if (r == 0) device->hostTask([] { userError("rank 0 is ill"); }, nullptr, {&errors[r], 0});
    device->communicate(*communicator, std::span(&operation, 1), nullptr, {&errors[r], 1});
    Event event = device->createEvent();
    device->recordEvent(event, nullptr);
    if (r == 0) {
      device->synchronize(event);
      worlds[0]->abort("rank 0 is ill");
    }
    device->synchronize(event);
    device->destroyEvent(event);
  };
  std::thread other([&] { rank(1); });
  rank(0);
  other.join();
  EXPECT_TRUE(errors[0].failed());
  EXPECT_TRUE(errors[1].failed());
  EXPECT_THROW(errors[1].rethrow(), UserError);
}

}  // namespace
}  // namespace heddle::host::cpu_communicate_cpu_test
