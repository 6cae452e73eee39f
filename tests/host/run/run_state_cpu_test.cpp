// Tests which runs a RunStatePool regards as completed.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "host/device/cpu/cpu_device.h"
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

}  // namespace
}  // namespace heddle::host::run_state_cpu_test
