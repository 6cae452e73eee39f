#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "tests/host/example_files.h"
#include "tests/host/executable_common.h"

// Runs examples/in_place_loop.hostir on any device. All runs share one Executable.
namespace heddle::host::testing {

struct LoopRun {
  std::vector<float> x;
  std::optional<Outputs> outputs;
};

// The inputs are small integers, so every sum is exact.
inline LoopRun startLoop(Executable& executable, Device& device, int seed, size_t count,
                         const RunOptions& options) {
  LoopRun run{ramp(count, static_cast<float>(seed), 1.0f), std::nullopt};
  const Tensor x = deviceFloats(device, run.x, {static_cast<int64_t>(count)});
  run.outputs.emplace(executable.run({x}, options));
  run.outputs->wait();  // the input is released here
  return run;
}

inline void expectNine(Device& device, const LoopRun& run) {
  std::vector<float> expected = run.x;
  for (float& value : expected) value += 9.0f;
  EXPECT_EQ(floatsOf(device, (*run.outputs)[0]), expected);
}

// Starts runs on two streams of the caller, so that both streams work at the same time. The second
// run of each stream starts while outputs of the first one exist. Some outputs are dropped before
// their run has completed.
inline void runOnTwoStreams(Executable& executable, Device& device, Allocator& allocator) {
  const std::vector<Stream> streams{device.createStream(), device.createStream()};
  {
    const std::vector<float> values = ramp(1000, 3.0f, 1.0f);
    const Tensor x = deviceFloats(device, values, {1000});
    std::vector<LoopRun> kept;
    for (int round = 0; round < 4; ++round) {
      for (const Stream stream : streams) {
        RunOptions options;
        options.stream = stream;
        options.allocator = &allocator;
        executable.run({x}, options);  // the outputs are dropped at once
        kept.push_back({values, executable.run({x}, options)});
      }
    }
    for (const LoopRun& run : kept) run.outputs->wait();
    for (const LoopRun& run : kept) expectNine(device, run);
  }
  for (const Stream stream : streams) device.destroyStream(stream);
}

// Starts runs on two threads with their own streams. The outputs of a run still exist during later
// runs.
inline void runOnTwoThreads(Executable& executable, Device& device, Allocator& allocator) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      const Stream stream = device.createStream();
      {
        RunOptions options;
        options.stream = stream;
        options.allocator = &allocator;
        std::vector<LoopRun> kept;
        for (int i = 0; i < 12; ++i) {
          kept.push_back(startLoop(executable, device, 100 * t + i, 1000, options));
        }
        for (const LoopRun& run : kept) expectNine(device, run);
      }
      device.destroyStream(stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Calls runOnTwoStreams() and runOnTwoThreads(). Requires that all runs share one plan and that no
// memory is held at the end.
inline void checkLoopProgram(Device& device) {
  TrackingAllocator tracking(device.allocator());
  Executable executable(programExample("in_place_loop.hostir"), {&device, nullptr, nullptr});
  runOnTwoStreams(executable, device, tracking);
  runOnTwoThreads(executable, device, tracking);
  EXPECT_EQ(executable.stats().plans, 1);
  EXPECT_EQ(executable.stats().runs, 2 * 8 + 2 * 12);
  EXPECT_EQ(executable.stats().peak_bytes, 4000);
  EXPECT_EQ(executable.stats().held_bytes, 0);
  EXPECT_EQ(tracking.heldBytes(), 0);
  EXPECT_GE(tracking.peakBytes(), 8 * 4000);
}

}  // namespace heddle::host::testing
