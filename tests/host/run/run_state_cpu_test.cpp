// Tests which runs a RunStatePool regards as completed, and which plans their records keep alive.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "host/device/cpu/cpu_device.h"
#include "host/device/null/null_device.h"
#include "host/run/run_state.h"

namespace heddle::host::run_state_cpu_test {
namespace {

// Two threads issue runs on one stream of the caller. The pool gets the runs in another order than
// the stream. A run counts as completed only after its own work.
TEST(RunStatePool, RunsOfAnotherThreadAreNotCompletedTooEarly) {
  const auto device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  const auto resources =
      std::make_shared<RunResources>(*device, std::vector<std::string>{}, nullptr);
  const auto plan = std::make_shared<const Plan>();
  const Stream stream = device->createStream();
  {
    EndedRuns ended;
    RunStatePool pool(*device, false);
    RunState* late[2] = {};
    std::thread other([&] {
      for (RunState*& state : late) state = &pool.take(resources, plan, stream, ended);
    });
    other.join();
    std::vector<RunState*> early;
    for (int i = 0; i < 6; ++i) {
      early.push_back(&pool.take(resources, plan, stream, ended));
      device->recordEvent(early.back()->completion->event, stream);
    }
    device->synchronize(early.back()->completion->event);
    std::atomic<bool> open{false};
    ErrorSink errors;
    device->hostTask(
        [&open] {
          while (!open) std::this_thread::yield();
        },
        stream, {&errors, -1});
    for (RunState* state : late) device->recordEvent(state->completion->event, stream);
    const std::shared_ptr<Completion> first = late[0]->completion;
    for (RunState* state : late) pool.giveBack(*state, ended);
    for (RunState* state : early) pool.giveBack(*state, ended);
    std::thread opener([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      open = true;
    });
    first->wait();
    EXPECT_TRUE(open);
    opener.join();
    pool.synchronize();
  }
  device->destroyStream(stream);
}

// The counters are cleared once. Each launch leaves them 0.
TEST(RunState, CountersAreClearedOncePerStream) {
  const auto counts = std::make_shared<NullCounts>();
  const auto device = makeNullDevice(counts);
  {
    RunState state(*device);
    const auto plan = std::make_shared<Plan>();
    plan->streams = 2;
    plan->communication_streams.assign(2, false);
    state.prepare(plan, nullptr);
    std::byte* const first = state.counters(StreamId(0));
    std::byte* const second = state.counters(StreamId(1));
    EXPECT_NE(first, second);
    state.prepare(std::make_shared<Plan>(*plan), nullptr);
    EXPECT_EQ(state.counters(StreamId(0)), first);
    EXPECT_EQ(state.counters(StreamId(1)), second);
    EXPECT_EQ(counts->allocate, 2);
    EXPECT_EQ(counts->fill, 2);
    EXPECT_EQ(counts->deallocate, 0);
  }
  EXPECT_EQ(counts->deallocate, 2);
}

struct RunStatePlans : ::testing::Test {
  static constexpr int kRuns = 500;
  static constexpr int kMostAlive = 128;  // whatever the number of runs is

  // Makes the work on `slow` wait for open().
  void block() {
    device->hostTask(
        [this] {
          while (!is_open) std::this_thread::yield();
        },
        slow, {&errors, -1});
  }
  // Issues a run of a new plan, which only the pool keeps alive.
  std::shared_ptr<Completion> run(Stream stream) {
    const auto plan = std::make_shared<const Plan>();
    plans.push_back(plan);
    EndedRuns ended;
    RunState& state = pool.take(resources, plan, stream, ended);
    state.prepare(plan, stream);
    const std::shared_ptr<Completion> completion = state.completion;
    device->recordEvent(completion->event, stream);
    pool.giveBack(state, ended);
    return completion;
  }
  int plansAlive() const {
    return static_cast<int>(std::count_if(plans.begin(), plans.end(),
                                          [](const auto& plan) { return !plan.expired(); }));
  }
  ~RunStatePlans() override {
    is_open = true;
    pool.synchronize();
    device->destroyStream(slow);
    device->destroyStream(fast);
  }

  std::unique_ptr<Device> device = makeCpuDevice({.threads = 1, .adversarial_seed = {}});
  Stream slow = device->createStream();
  Stream fast = device->createStream();
  std::atomic<bool> is_open{false};
  ErrorSink errors;
  std::shared_ptr<RunResources> resources =
      std::make_shared<RunResources>(*device, std::vector<std::string>{}, nullptr);
  RunStatePool pool{*device, false};
  std::vector<std::weak_ptr<const Plan>> plans;
};

TEST_F(RunStatePlans, AreReleasedWhileARunOnAnotherStreamLasts) {
  block();
  run(slow);
  for (int i = 0; i < kRuns; ++i) run(fast)->waitForEnd();
  EXPECT_FALSE(is_open);
  EXPECT_LE(plansAlive(), kMostAlive);
}

TEST_F(RunStatePlans, AreReleasedAfterManyRunsWereInFlight) {
  block();
  for (int i = 0; i < kRuns; ++i) run(slow);
  EXPECT_EQ(plansAlive(), kRuns);
  is_open = true;
  pool.synchronize();
  EXPECT_LE(plansAlive(), kMostAlive);
  for (int i = 0; i < 10; ++i) run(slow)->waitForEnd();  // records serve further runs
}

}  // namespace
}  // namespace heddle::host::run_state_cpu_test
