// Tests to which runs an error belongs, and how long a run keeps its inputs.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "host/compile.h"
#include "host/device/cpu/cpu_device.h"
#include "host/executable.h"
#include "host/executable_parts.h"
#include "host/fusion_executor.h"
#include "host/run/completion.h"
#include "host/tensor.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"

namespace heddle::host::completion_cpu_test {
namespace {

using testing::deviceFloats;
using testing::floatsOf;
using testing::programOf;
using testing::userErrorOf;

// Copies %x to %y, and fails if %x contains a NaN.
const char* const kCheckedCopy = R"(
program p(%x: f32[n]) -> (%y) with n = 2 {
  slot %y: f32[n]
  %y = allocate stream=0
  check %x stream=0
  copy %x -> %y stream=0
}
)";

// Waits at most ten seconds for a condition.
bool becomesTrue(const std::function<bool()>& condition) {
  for (int i = 0; i < 10'000 && !condition(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

ErrorCode codeOf(const Outputs& outputs) {
  try {
    outputs.wait();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::Internal;
}

struct CompletionCpu : ::testing::Test {
  std::unique_ptr<Device> device = makeCpuDevice({.threads = 2, .adversarial_seed = {}});
  Context context{device.get(), nullptr, nullptr};
  Tensor good = deviceFloats(*device, {1, 2}, {2});
  Tensor bad = deviceFloats(*device, {1, NAN}, {2});
};

TEST_F(CompletionCpu, OtherRunsDoNotThrowTheErrorOfARun) {
  Executable executable(programOf(kCheckedCopy), context);
  const Outputs failed = executable.run({bad});
  EXPECT_NE(userErrorOf([&] { failed.wait(); }).find("instruction 1"), std::string::npos);
  for (int i = 0; i < 100; ++i) {
    const Outputs outputs = executable.run({good});
    outputs.wait();
    EXPECT_EQ(floatsOf(*device, outputs[0]), (std::vector<float>{1, 2}));
  }
  EXPECT_FALSE(userErrorOf([&] { failed.wait(); }).empty()) << "every wait() throws the error";
  EXPECT_EQ(executable.stats().unreported_failures, 0);
}

TEST_F(CompletionCpu, ThreadsGetTheErrorsOfTheirOwnRuns) {
  Executable executable(programOf(kCheckedCopy), context);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, fails = t % 2 == 0] {
      for (int i = 0; i < 200; ++i) {
        const std::string error = userErrorOf([&] { executable.run({fails ? bad : good}).wait(); });
        if (error.empty() == fails) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST_F(CompletionCpu, FailedRunWithoutAWaitIsPrintedAndCounted) {
  Executable executable(programOf(kCheckedCopy), context);
  ::testing::internal::CaptureStderr();
  { const Outputs dropped = executable.run({bad}); }
  EXPECT_TRUE(becomesTrue([&] {
    executable.run({good}).wait();
    return executable.stats().unreported_failures == 1;
  }));
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("a run failed and no caller waited for it: instruction 1"), std::string::npos)
      << text;
}

TEST_F(CompletionCpu, RunThatReadsAnOutputOfAFailedRunFails) {
  Executable executable(programOf(kCheckedCopy), context);
  FusionExecutor relu(parseFusion("heddle 1\nfusion f(%x: f32[n]) {\n"
                                  "  %y = relu(%x)\n  return %y\n}\n"),
                      context);
  RunOptions options;
  options.stream = device->createStream();
  relu.run({good}, options).wait();
  executable.run({good}, options).wait();
  ErrorSink errors;
  {
    // The first run fails when all three have been issued.
    device->hostTask([] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); },
                     options.stream, {&errors, -1});
    const Outputs failed = executable.run({bad}, options);
    const Outputs second = relu.run({failed[0]}, options);
    const Outputs third = relu.run({second[0]}, options);
    const std::string error = userErrorOf([&] { third.wait(); });
    EXPECT_EQ(error.find("input 0 is an output of a failed run: instruction 1"), 0u) << error;
    EXPECT_EQ(userErrorOf([&] { second.wait(); }), error);
    EXPECT_EQ(codeOf(second), codeOf(failed));
    // The failure is known now, so a further run does not start.
    EXPECT_EQ(userErrorOf([&] { relu.run({third[0]}, options); }), error);
    relu.run({good}, options).wait();
  }
  device->destroyStream(options.stream);
}

TEST_F(CompletionCpu, UpdateInPlaceOfAFailedResultFails) {
  Executable executable(programOf(R"(
program p(%w: f32[n], %x: f32[n]) -> (%w) with n = 2 {
  check %x stream=0
  copy %x -> %w stream=0
}
)"),
                        context);
  RunOptions options;
  options.stream = device->createStream();
  {
    const Tensor w = deviceFloats(*device, {0, 0}, {2});
    const std::weak_ptr<void> memory = w.owner;
    Outputs latest = executable.run({w, good}, options);
    for (int i = 0; i < 10; ++i) latest = executable.run({latest[0], good}, options);
    latest.wait();
    EXPECT_EQ(floatsOf(*device, latest[0]), (std::vector<float>{1, 2}));
    EXPECT_FALSE(memory.expired());
    latest = executable.run({latest[0], bad}, options);
    const std::string error = userErrorOf([&] {
      executable.run({latest[0], good}, options).wait();
    });
    EXPECT_EQ(error.find("input 0 is an output of a failed run"), 0u) << error;
  }
  device->destroyStream(options.stream);
}

// A caller may give a part of an output an owner of its own, which aliases that of the output.
TEST_F(CompletionCpu, OwnersMayBeAliased) {
  Executable executable(programOf(R"(
program p(%w: f32[n], %x: f32[n]) -> (%w) with n = 2 {
  check %x stream=0
  copy %x -> %w stream=0
}
)"),
                        context);
  Tensor w = deviceFloats(*device, {0, 0}, {2});
  const std::weak_ptr<void> memory = w.owner;
  for (int i = 0; i < 3; ++i) {
    const Outputs outputs = executable.run({w, good});
    outputs.wait();
    w = outputs.tensor(0);
    w.owner = std::shared_ptr<void>(w.owner, w.data);
  }
  EXPECT_EQ(floatsOf(*device, w), (std::vector<float>{1, 2}));
  EXPECT_FALSE(memory.expired());
  w.owner.reset();
  EXPECT_TRUE(becomesTrue([&] { return memory.expired(); }));
}

// The memory belongs to the caller, so the tensor has no owner of its own.
TEST_F(CompletionCpu, FailureIsFoundThroughPreallocatedMemory) {
  Executable executable(programOf(kCheckedCopy), context);
  std::vector<float> memory(2);
  RunOptions options;
  options.preallocated = {Tensor{memory.data(), denseDesc(DType::F32, {2}), nullptr}};
  const Outputs failed = executable.run({bad}, options);
  const std::string error = userErrorOf([&] { executable.run({failed[0]}).wait(); });
  EXPECT_EQ(error.find("input 0 is an output of a failed run"), 0u) << error;
  EXPECT_FALSE(userErrorOf([&] { failed.wait(); }).empty());
}

// The runs of a long chain wait for each other. The last one finds out that the first has failed.
TEST_F(CompletionCpu, FailurePassesThroughLongChains) {
  Executable executable(programOf(kCheckedCopy), context);
  FusionExecutor relu(parseFusion("heddle 1\nfusion f(%x: f32[n]) {\n"
                                  "  %y = relu(%x)\n  return %y\n}\n"),
                      context);
  RunOptions options;
  options.stream = device->createStream();
  relu.run({good}, options).wait();
  ErrorSink errors;
  {
    device->hostTask([] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); },
                     options.stream, {&errors, -1});
    std::vector<Outputs> chain = {executable.run({bad}, options)};
    for (int i = 0; i < 2000; ++i) {
      try {
        chain.push_back(relu.run({chain.back()[0]}, options));
      } catch (const UserError&) {
        break;  // the failure was found while the chain was issued
      }
    }
    EXPECT_FALSE(userErrorOf([&] { chain.back().wait(); }).empty());
  }
  device->destroyStream(options.stream);
}

// The owner of an input runs the executor again, so it must be released without a lock.
TEST_F(CompletionCpu, OwnerMayStartARun) {
  Executable executable(programOf(kCheckedCopy), context);
  std::atomic<int> runs{0};
  for (int i = 0; i < 100; ++i) {
    Tensor x = good;
    x.owner = std::shared_ptr<void>(good.data, [&](void*) {
      executable.run({good}).wait();
      ++runs;
    });
    executable.run({x});
  }
  EXPECT_TRUE(becomesTrue([&] { return runs.load() == 100; }));
}

// The memory of a temporary tensor is overwritten when its owner is released. The thread that polls
// the runs may release the owner while the test returns from wait().
TEST_F(CompletionCpu, InputsStayAliveUntilTheRunHasEnded) {
  Executable executable(programOf(kCheckedCopy), context);
  const Stream stream = device->createStream();
  RunOptions options;
  options.stream = stream;
  std::vector<float> memory{3, 4};
  std::atomic<bool> is_released{false};
  const auto temporary = [&] {
    Tensor x{memory.data(), denseDesc(DType::F32, {2}), nullptr};
    x.owner = std::shared_ptr<void>(memory.data(), [&](void*) {
      memory = {-1, -1};
      is_released = true;
    });
    return x;
  };
  executable.run({good}, options).wait();
  ErrorSink errors;
  device->hostTask([] { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }, stream,
                   {&errors, -1});
  const Outputs outputs = executable.run({temporary()}, options);
  outputs.wait();
  EXPECT_EQ(floatsOf(*device, outputs[0]), (std::vector<float>{3, 4}));
  EXPECT_TRUE(becomesTrue([&] { return is_released.load(); }));
  device->destroyStream(stream);
}

TEST_F(CompletionCpu, InputsAreReleasedWithoutAWait) {
  Executable executable(programOf(kCheckedCopy), context);
  std::vector<std::weak_ptr<void>> owners;
  std::vector<Outputs> outputs;
  for (int i = 0; i < 3; ++i) {
    Tensor x = deviceFloats(*device, {1, 2}, {2});
    owners.push_back(x.owner);
    outputs.push_back(executable.run({x}));
  }
  for (const std::weak_ptr<void>& owner : owners) {
    EXPECT_TRUE(becomesTrue([&] { return owner.expired(); }));
  }
}

// The deleter of an owner destroys the Executable, on the thread that releases owners. When the
// destructor has returned, nothing of the Executable is left that needs the device, and the owners
// of the other runs have been released.
TEST_F(CompletionCpu, OwnerMayDestroyTheExecutable) {
  auto executable = std::make_unique<Executable>(programOf(kCheckedCopy), context);
  const std::weak_ptr<RunResources> resources = ExecutableParts::resourcesOf(*executable);
  std::atomic<bool> inputs_are_gone{false};
  std::atomic<int> released{0};
  std::atomic<int> released_before{-1};
  std::atomic<bool> is_gone{false};
  std::thread::id releases;
  {
    Executable* const target = executable.get();
    std::vector<Tensor> inputs(3, good);
    for (size_t i : {0, 2}) {
      inputs[i].owner = std::shared_ptr<void>(good.data, [&](void*) { ++released; });
    }
    inputs[1].owner = std::shared_ptr<void>(
        good.data, [&, kept = std::shared_ptr<Executable>(std::move(executable))](void*) mutable {
          kept.reset();
          releases = std::this_thread::get_id();
          is_gone = resources.expired();
          released_before = released.load();
        });
    const Stream stream = device->createStream();
    RunOptions options;
    options.stream = stream;
    ErrorSink errors;
    device->hostTask([&] { EXPECT_TRUE(becomesTrue([&] { return inputs_are_gone.load(); })); },
                     stream, {&errors, -1});
    for (const Tensor& x : inputs) target->run({x}, options);
    inputs.clear();
    inputs_are_gone = true;
    EXPECT_TRUE(becomesTrue([&] { return released_before >= 0; }));
    device->destroyStream(stream);
  }
  EXPECT_NE(releases, std::this_thread::get_id());
  EXPECT_TRUE(is_gone);
  EXPECT_EQ(released_before, 2);
}

}  // namespace
}  // namespace heddle::host::completion_cpu_test
