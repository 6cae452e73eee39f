#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <vector>

#include "host/device/cpu/cpu_device.h"
#include "host/device/device.h"

namespace heddle::host::adversarial_scheduler_test {
namespace {

constexpr uint64_t kSeeds = 20;

std::unique_ptr<Device> deviceFor(uint64_t seed) {
  CpuOptions options;
  options.threads = 1;
  options.adversarial_seed = seed;
  return makeCpuDevice(options);
}

void finish(Device& device, Stream stream) {
  Event event = device.createEvent();
  device.recordEvent(event, stream);
  device.synchronize(event);
  device.destroyEvent(event);
}

// Runs a producer on one stream and a consumer on another, and returns what the consumer reads.
float consumed(uint64_t seed, bool with_event, bool consumer_first_enqueued = false) {
  auto device = deviceFor(seed);
  Stream a = device->createStream();
  Stream b = device->createStream();
  if (consumer_first_enqueued) std::swap(a, b);
  float value = -1;
  auto* memory = static_cast<float*>(device->allocator().allocate(4, a));
  Event event = device->createEvent();
  device->hostTask([memory] { *memory = 42; }, a, {});
  device->recordEvent(event, a);
  if (with_event) device->waitEvent(b, event);
  device->copy(&value, memory, 4, b, {});
  finish(*device, b);
  finish(*device, a);
  device->allocator().deallocate(memory, 4, a);
  device->destroyEvent(event);
  return value;
}

TEST(AdversarialScheduler, MissingWaitFailsUnderSomeSeed) {
  for (bool swapped : {false, true}) {
    int wrong = 0;
    int right = 0;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      (consumed(seed, false, swapped) == 42 ? right : wrong)++;
    }
    EXPECT_GT(wrong, 0);
    EXPECT_GT(right, 0);
  }
}

TEST(AdversarialScheduler, WaitsHoldUnderEverySeed) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) EXPECT_EQ(consumed(seed, true), 42) << seed;
}

TEST(AdversarialScheduler, UnwrittenAndFreedMemoryIsNan) {
  auto device = deviceFor(3);
  Stream stream = device->createStream();
  float values[2] = {0, 0};
  void* memory = device->allocator().allocate(8, stream);
  device->copy(&values[0], memory, 4, stream, {});
  device->fill(memory, 0, 8, stream, {});
  device->allocator().deallocate(memory, 8, stream);
  device->copy(&values[1], memory, 4, stream, {});
  finish(*device, stream);
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_TRUE(std::isnan(values[1]));
  device->destroyStream(stream);
}

// Returns the order in which 3 streams of 8 independent tasks run.
std::vector<int> orderOf(uint64_t seed) {
  auto device = deviceFor(seed);
  std::vector<Stream> streams;
  std::vector<int> order;
  for (int s = 0; s < 3; ++s) streams.push_back(device->createStream());
  for (int i = 0; i < 8; ++i) {
    for (int s = 0; s < 3; ++s)
      device->hostTask([&order, s] { order.push_back(s); }, streams[s], {});
  }
  for (Stream stream : streams) finish(*device, stream);
  return order;
}

TEST(AdversarialScheduler, SeedDeterminesTheOrder) {
  std::set<std::vector<int>> orders;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::vector<int> order = orderOf(seed);
    EXPECT_EQ(order.size(), 24U);
    EXPECT_EQ(order, orderOf(seed)) << seed;
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), kSeeds / 2);
}

TEST(AdversarialScheduler, EveryStreamRunsFirstUnderSomeSeed) {
  std::set<int> whole_first;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::vector<int> order = orderOf(seed);
    bool whole = true;
    for (int i = 0; i < 8; ++i) whole = whole && order[i] == order[0];
    if (whole) whole_first.insert(order[0]);
  }
  EXPECT_EQ(whole_first.size(), 3U);
}

// Two streams exchange data through a ring buffer of two slots. Events make each stream wait for
// the other one.
TEST(AdversarialScheduler, LegalPipelineIsRightUnderEverySeed) {
  constexpr int kSteps = 20;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    auto device = deviceFor(seed);
    Stream make = device->createStream();
    Stream use = device->createStream();
    int slots[2] = {-1, -1};
    std::vector<int> used;
    Event full[2] = {device->createEvent(), device->createEvent()};
    Event empty[2] = {device->createEvent(), device->createEvent()};
    for (int i = 0; i < kSteps; ++i) {
      int* slot = &slots[i % 2];
      device->waitEvent(make, empty[i % 2]);
      device->hostTask([slot, i] { *slot = i; }, make, {});
      device->recordEvent(full[i % 2], make);
      device->waitEvent(use, full[i % 2]);
      device->hostTask([slot, &used] { used.push_back(*slot); }, use, {});
      device->recordEvent(empty[i % 2], use);
    }
    finish(*device, use);
    ASSERT_EQ(used.size(), static_cast<size_t>(kSteps));
    for (int i = 0; i < kSteps; ++i) EXPECT_EQ(used[i], i) << seed;
    for (Event event : {full[0], full[1], empty[0], empty[1]}) device->destroyEvent(event);
  }
}

}  // namespace
}  // namespace heddle::host::adversarial_scheduler_test
