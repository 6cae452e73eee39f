#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <future>
#include <new>
#include <thread>
#include <vector>

#include "host/device/cpu/cpu_device.h"
#include "host/device/device.h"
#include "ir/base/check.h"

namespace heddle::host::cpu_stream_test {
namespace {

// Runs each test twice: with the normal scheduler of streams, and with the adversarial one.
class CpuStreams : public ::testing::TestWithParam<bool> {
 protected:
  CpuOptions options() const {
    CpuOptions options;
    options.threads = 2;
    if (GetParam()) options.adversarial_seed = 7;
    return options;
  }
  static void finish(Device& device, Stream stream) {
    Event event = device.createEvent();
    device.recordEvent(event, stream);
    device.synchronize(event);
    EXPECT_TRUE(device.eventDone(event));
    device.destroyEvent(event);
  }
};

TEST_P(CpuStreams, TasksRunInOrder) {
  auto device = makeCpuDevice(options());
  Stream stream = device->createStream();
  std::vector<int> seen;
  for (int i = 0; i < 1000; ++i) device->hostTask([&seen, i] { seen.push_back(i); }, stream, {});
  finish(*device, stream);
  ASSERT_EQ(seen.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[i], i);
  device->destroyStream(stream);
}

TEST_P(CpuStreams, CopiesAndFillsRunInOrder) {
  auto device = makeCpuDevice(options());
  Stream stream = device->createStream();
  auto* memory = static_cast<char*>(device->allocator().allocate(64, stream));
  char out[64] = {};
  device->fill(memory, 3, 64, stream, {});
  device->fill(memory, 5, 32, stream, {});
  device->copy(out, memory, 64, stream, {});
  device->copy(out, memory, 0, stream, {});
  finish(*device, stream);
  EXPECT_EQ(out[0], 5);
  EXPECT_EQ(out[31], 5);
  EXPECT_EQ(out[32], 3);
  device->allocator().deallocate(memory, 64, stream);
  device->destroyStream(stream);
}

TEST_P(CpuStreams, UnrecordedEventIsDone) {
  auto device = makeCpuDevice(options());
  Event event = device->createEvent();
  EXPECT_TRUE(device->eventDone(event));
  device->synchronize(event);
  device->waitEvent(nullptr, event);
  bool ran = false;
  device->hostTask([&] { ran = true; }, nullptr, {});
  finish(*device, nullptr);
  EXPECT_TRUE(ran);
  device->destroyEvent(event);
}

TEST_P(CpuStreams, WaitRefersToTheEarlierRecord) {
  auto device = makeCpuDevice(options());
  Stream a = device->createStream();
  Stream b = device->createStream();
  std::promise<void> gate;
  std::shared_future<void> open = gate.get_future().share();
  std::atomic<bool> first{false};
  Event event = device->createEvent();
  device->hostTask([&] { first = true; }, a, {});
  device->recordEvent(event, a);
  device->waitEvent(b, event);
  bool seen = false;
  std::promise<void> b_ran;
  device->hostTask(
      [&] {
        seen = first;
        b_ran.set_value();
      },
      b, {});
  if (!GetParam()) {
    // Records the event again, after work that does not finish before the gate opens. Stream b must
    // wait for the first record only.
    device->hostTask([open] { open.wait(); }, a, {});
    device->recordEvent(event, a);
    EXPECT_FALSE(device->eventDone(event));
  }
  b_ran.get_future().wait();
  EXPECT_TRUE(seen);
  gate.set_value();
  device->synchronize(event);
  device->destroyEvent(event);
  device->destroyStream(b);
  device->destroyStream(a);
}

TEST_P(CpuStreams, DestroyStreamWaitsForItsWork) {
  auto device = makeCpuDevice(options());
  std::atomic<int> ran{0};
  for (int round = 0; round < 5; ++round) {
    Stream stream = device->createStream();
    for (int i = 0; i < 10; ++i) device->hostTask([&] { ++ran; }, stream, {});
    device->destroyStream(stream);
    EXPECT_EQ(ran, 10 * (round + 1));
  }
}

TEST_P(CpuStreams, DeviceDestructorWaitsForItsWork) {
  std::atomic<int> ran{0};
  {
    auto device = makeCpuDevice(options());
    Stream a = device->createStream();
    Stream b = device->createStream();
    Event event = device->createEvent();
    device->hostTask([&] { ++ran; }, a, {});
    device->recordEvent(event, a);
    device->waitEvent(b, event);
    device->hostTask([&] { ++ran; }, b, {});
    device->destroyEvent(event);
  }
  EXPECT_EQ(ran, 2);
}

TEST_P(CpuStreams, ErrorSkipsLaterWorkOfTheSameRunOnly) {
  auto device = makeCpuDevice(options());
  Stream a = device->createStream();
  Stream b = device->createStream();
  ErrorSink failing;
  ErrorSink other;
  Event event = device->createEvent();
  bool skipped = true;
  bool ran = false;
  device->hostTask([] { userError("bad value"); }, a, {&failing, 4});
  device->hostTask([&] { skipped = false; }, a, {&failing, 5});
  device->hostTask([&] { ran = true; }, a, {&other, 6});
  device->recordEvent(event, a);
  device->waitEvent(b, event);
  device->hostTask([&] { skipped = false; }, b, {&failing, 7});
  finish(*device, b);
  EXPECT_TRUE(skipped);
  EXPECT_TRUE(ran);
  EXPECT_FALSE(other.failed());
  ASSERT_TRUE(failing.failed());
  try {
    failing.rethrow();
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "instruction 4: bad value");
  }
  device->destroyEvent(event);
  device->destroyStream(a);
  device->destroyStream(b);
}

TEST_P(CpuStreams, ThreadsUseTheirOwnStreamsConcurrently) {
  auto device = makeCpuDevice(options());
  std::vector<std::thread> threads;
  std::vector<int64_t> sums(4, 0);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Stream stream = device->createStream();
      for (int i = 1; i <= 200; ++i) {
        void* memory = device->allocator().allocate(1000 + i, stream);
        device->fill(memory, t, 1000 + i, stream, {});
        device->hostTask([&, t, i, memory] { sums[t] += i + static_cast<char*>(memory)[i] - t; },
                         stream, {});
        device->allocator().deallocate(memory, 1000 + i, stream);
        if (i % 50 == 0) finish(*device, stream);
      }
      device->destroyStream(stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int64_t sum : sums) EXPECT_EQ(sum, 20100);
}

TEST_P(CpuStreams, MemoryLimitIsEnforced) {
  CpuOptions limited = options();
  limited.memory_limit = 1 << 20;
  auto device = makeCpuDevice(limited);
  Allocator& pool = device->allocator();
  Stream a = device->createStream();
  Stream b = device->createStream();
  void* block = pool.allocate(1 << 20, a);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 256, 0U);
  EXPECT_THROW(pool.allocate(1, a), std::bad_alloc);
  pool.deallocate(block, 1 << 20, a);
  // If the pool needs memory, it frees unused blocks, also blocks of other sizes and streams.
  void* small = pool.allocate(1 << 19, b);
  pool.deallocate(small, 1 << 19, b);
  EXPECT_THROW(pool.allocate(int64_t{1} << 62, a), std::bad_alloc);
  device->destroyStream(a);
  device->destroyStream(b);
}

TEST_P(CpuStreams, FreedBlockIsReusedOnItsStreamAtOnce) {
  auto device = makeCpuDevice(options());
  Allocator& pool = device->allocator();
  Stream a = device->createStream();
  Stream b = device->createStream();
  std::promise<void> gate;
  std::shared_future<void> open = gate.get_future().share();
  void* block = pool.allocate(4096, a);
  device->hostTask([open] { open.wait(); }, a, {});
  pool.deallocate(block, 4096, a);
  void* elsewhere = pool.allocate(4096, b);
  EXPECT_NE(elsewhere, block);
  void* again = pool.allocate(4000, a);
  EXPECT_EQ(again, block);
  gate.set_value();
  pool.deallocate(again, 4000, a);
  pool.deallocate(elsewhere, 4096, b);
  device->destroyStream(a);
  device->destroyStream(b);
}

INSTANTIATE_TEST_SUITE_P(Orders, CpuStreams, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "adversarial" : "plain"; });

}  // namespace
}  // namespace heddle::host::cpu_stream_test
