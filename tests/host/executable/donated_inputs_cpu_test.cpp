// Tests inputs that the caller donates to a run, on one rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "host/device/cpu/cpu_device.h"
#include "host/fusion_executor.h"
#include "host/prepared_run.h"
#include "ir/text/fusion_text.h"
#include "tests/host/executable_common.h"

namespace heddle::host::donated_inputs_cpu_test {
namespace {

using testing::deviceFloats;
using testing::FailingAllocator;
using testing::floatsOf;
using testing::programOf;
using testing::ramp;
using testing::userErrorOf;

struct DonatedInputs : ::testing::Test {
  std::unique_ptr<Device> device = makeCpuDevice({.threads = 2, .adversarial_seed = 5});
  Context context{device.get(), nullptr, nullptr};

  FusionExecutor executorOf(const std::string& text) {
    return FusionExecutor(parseFusion("heddle 1\n" + text, "test"), context);
  }
  Tensor tensor(const std::vector<float>& values, std::vector<int64_t> sizes) {
    return deviceFloats(*device, values, std::move(sizes));
  }
  static RunOptions donating(std::vector<size_t> inputs) {
    RunOptions options;
    options.donated = std::move(inputs);
    return options;
  }
};

const char* const kUpdate = R"(
fusion update(%w: f32[n], %g: f32[n], %m: f32[n]) {
  %m9 = mul(%m, 0.5)
  %m1 = add(%m9, %g)
  %u = mul(%m1, 0.25)
  %w1 = sub(%w, %u)
  return %w1, %m1
})";

TEST_F(DonatedInputs, OutputsAreStoredInDonatedInputs) {
  FusionExecutor executor = executorOf(kUpdate);
  const size_t n = 1000;
  const std::vector<float> w = ramp(n, 1, 0.5f), g = ramp(n, -3, 0.25f), m = ramp(n, 0, 2);
  for (const std::vector<size_t>& donated :
       std::vector<std::vector<size_t>>{{}, {0, 2}, {1}, {2}, {0, 1, 2}}) {
    const std::vector<Argument> inputs = {tensor(w, {1000}), tensor(g, {1000}), tensor(m, {1000})};
    const Outputs outputs = executor.run(inputs, donating(donated));
    outputs.wait();
    std::vector<float> w1(n), m1(n);
    for (size_t i = 0; i < n; ++i) {
      m1[i] = m[i] * 0.5f + g[i];
      w1[i] = w[i] - m1[i] * 0.25f;
    }
    EXPECT_EQ(floatsOf(*device, outputs[0]), w1);
    EXPECT_EQ(floatsOf(*device, outputs[1]), m1);
    size_t reused = 0;
    for (size_t i = 0; i < 2; ++i) {
      const std::optional<AliasedTensor> aliased = outputs.aliased(i);
      if (!aliased) continue;
      ++reused;
      EXPECT_EQ(std::get<Tensor>(outputs[i]).data, std::get<Tensor>(inputs[aliased->index]).data);
      EXPECT_NE(std::find(donated.begin(), donated.end(), aliased->index), donated.end());
    }
    EXPECT_EQ(reused, std::min<size_t>(2, donated.size()));
    // An input that is not donated keeps its value.
    for (size_t i = 0; i < 3; ++i) {
      if (std::find(donated.begin(), donated.end(), i) != donated.end()) continue;
      EXPECT_EQ(floatsOf(*device, inputs[i]), i == 0 ? w : i == 1 ? g : m);
    }
  }
  EXPECT_EQ(executor.stats().programs, 1);  // donation decides the plan, not the program
  EXPECT_EQ(executor.stats().plans, 5);
}

// The outputs of a step are the inputs of the next one, so no step needs new memory.
TEST_F(DonatedInputs, LoopNeedsNoMemory) {
  FusionExecutor executor = executorOf(kUpdate);
  const size_t n = 64;
  std::vector<float> w = ramp(n, 1, 0.5f), m = ramp(n, 0, 2);
  const std::vector<float> g = ramp(n, -3, 0.25f);
  const Tensor tg = tensor(g, {64});
  Argument tw = tensor(w, {64}), tm = tensor(m, {64});
  TrackingAllocator tracking(device->allocator());
  RunOptions options = donating({0, 2});
  options.allocator = &tracking;
  for (int step = 0; step < 5; ++step) {
    const Outputs outputs = executor.run({tw, tg, tm}, options);
    outputs.wait();
    tw = outputs[0];
    tm = outputs[1];
    for (size_t i = 0; i < n; ++i) {
      m[i] = m[i] * 0.5f + g[i];
      w[i] = w[i] - m[i] * 0.25f;
    }
  }
  EXPECT_EQ(floatsOf(*device, tw), w);
  EXPECT_EQ(floatsOf(*device, tm), m);
  EXPECT_EQ(tracking.peakBytes(), 0);
  EXPECT_EQ(executor.stats().peak_bytes, 0);
  EXPECT_EQ(executor.stats().peak_bytes_without_reuse, 2 * 4 * 64);
}

TEST_F(DonatedInputs, PreparedRunReusesNewAddresses) {
  FusionExecutor executor = executorOf("fusion f(%x: f32[n]) { %y = relu(%x) return %y }");
  PreparedRun run = executor.prepareRun({tensor({1, -1}, {2})}, donating({0}));
  for (float value : {2.0f, 3.0f}) {
    const Tensor x = tensor({value, -value}, {2});
    run.setInput(0, x.data);
    const Outputs outputs = run.run();
    outputs.wait();
    EXPECT_EQ(std::get<Tensor>(outputs[0]).data, x.data);
    EXPECT_EQ(floatsOf(*device, x), (std::vector<float>{value, 0}));
  }
}

TEST_F(DonatedInputs, PreallocatedOutputStaysInItsTensor) {
  FusionExecutor executor = executorOf(kUpdate);
  const std::vector<Argument> inputs = {tensor({1, 2}, {2}), tensor({3, 4}, {2}),
                                        tensor({5, 6}, {2})};
  RunOptions options = donating({0, 1, 2});
  options.preallocated = {tensor({0, 0}, {2}), Tensor()};
  const Outputs outputs = executor.run(inputs, options);
  outputs.wait();
  EXPECT_EQ(std::get<Tensor>(outputs[0]).data, options.preallocated[0].data);
  EXPECT_EQ(floatsOf(*device, outputs[0]), (std::vector<float>{1 - 0.25f * 5.5f, 2 - 0.25f * 7}));
  EXPECT_EQ(floatsOf(*device, outputs[1]), (std::vector<float>{5.5f, 7}));
}

// After every failure, the same executor runs again with fresh inputs.
TEST_F(DonatedInputs, FailingAllocationsLeaveTheExecutorUsable) {
  FusionExecutor executor = executorOf(R"(
fusion f(%x: f32[n, n], %y: f32[n, n]) {
  %a = matmul(%x, %y)
  %b = tanh(%a)
  %c = matmul(%b, %a)
  %d = relu(%c)
  %e = matmul(%d, %b)
  return %d, %e
})");
  FailingAllocator failing(device->allocator());
  TrackingAllocator tracking(failing);
  RunOptions options = donating({1});
  options.allocator = &tracking;
  const std::vector<float> x = ramp(9, 0.1f, 0.01f), y = ramp(9, 0.2f, 0.02f);
  const auto run = [&] {
    const std::vector<Argument> inputs = {tensor(x, {3, 3}), tensor(y, {3, 3})};
    const Outputs outputs = executor.run(inputs, options);
    outputs.wait();
    return floatsOf(*device, outputs[1]);
  };
  const std::vector<float> first = run();
  int failures = 0;
  for (int64_t n = 0; n < 20; ++n) {
    failing.failAt(n);
    const std::string error = userErrorOf([&] { run(); });
    failing.failAt(-1);
    if (error.empty()) break;
    ++failures;
    EXPECT_NE(error.find("out of memory"), std::string::npos) << error;
    EXPECT_EQ(tracking.heldBytes(), 0);
    EXPECT_EQ(run(), first);
  }
  EXPECT_GT(failures, 0);
}

TEST_F(DonatedInputs, ListsThatCannotBeDonatedAreErrors) {
  FusionExecutor executor =
      executorOf("fusion f(%x: f32[n], %k: f32) { %y = mul(%x, %k) return %y }");
  const std::vector<Argument> inputs = {tensor({1, 2}, {2}), Scalar(2.0)};
  const auto errorOf = [&](std::vector<size_t> donated) {
    return userErrorOf([&] { executor.run(inputs, donating(std::move(donated))); });
  };
  EXPECT_EQ(errorOf({0, 0}), "input 0 (%x) is donated twice");
  EXPECT_EQ(errorOf({1}), "input 1 (%k) is a scalar and cannot be donated");
  EXPECT_EQ(errorOf({2}), "there is no input 2 to donate: the run has 2 inputs");
}

TEST_F(DonatedInputs, TensorInHostMemoryIsAnError) {
  FusionExecutor executor =
      executorOf("fusion f(%x: f32[n], %k: f32[]) { %y = mul(%x, %k) return %y }");
  float k = 2;
  const std::vector<Argument> inputs = {tensor({1, 2}, {2}),
                                        Tensor{&k, denseDesc(DType::F32, {}), nullptr, true}};
  EXPECT_EQ(userErrorOf([&] { executor.run(inputs, donating({1})); }),
            "input 1 is in host memory and cannot be donated");
}

TEST_F(DonatedInputs, SharedMemoryIsAnError) {
  FusionExecutor executor = executorOf(kUpdate);
  const Tensor w = tensor({1, 2}, {2}), g = tensor({3, 4}, {2});
  const auto errorOf = [&](const Tensor& m, const RunOptions& options) {
    return userErrorOf([&] { executor.run({w, g, m}, options); });
  };
  EXPECT_EQ(errorOf(w, donating({0})),
            "inputs 0 (%w) and 2 (%m) overlap in memory, and %w is donated");
  EXPECT_EQ(errorOf(g, donating({2})),
            "inputs 1 (%g) and 2 (%m) overlap in memory, and %m is donated");
  RunOptions options = donating({0});
  options.preallocated = {Tensor(), w};
  EXPECT_EQ(errorOf(tensor({5, 6}, {2}), options),
            "preallocated output 1 (%m1) overlaps the memory of input 0 (%w)");
}

TEST_F(DonatedInputs, TensorWithGapsIsAnError) {
  FusionExecutor executor = executorOf("fusion f(%x: f32[n, m]) { %y = relu(%x) return %y }");
  Tensor x = tensor(ramp(12, 0, 1), {3, 4});
  x.desc = denseDesc(DType::F32, {3, 2});
  x.desc.strides = {4, 1};
  EXPECT_EQ(userErrorOf([&] { executor.run({x}, donating({0})); }),
            "input 0 (%x) is donated, so it must be allocated as inputDesc() says: [3, 2] with "
            "strides [2, 1], got [3, 2] with [4, 1]");
}

TEST_F(DonatedInputs, OutputsInOrOfADonatedInputAreErrors) {
  FusionExecutor in = executorOf("fusion f(%x: f32[n]) { %y = relu(%x) return %y in %x }");
  FusionExecutor view =
      executorOf("fusion f(%x: f32[n, m]) { %y = permute(%x, axes=[1, 0]) return %y }");
  EXPECT_EQ(userErrorOf([&] {
              in.run({tensor({1, 2}, {2})}, donating({0}));
            }),
            "input 0 (%x) is donated, but output 0 (%y) is stored in it");
  EXPECT_EQ(userErrorOf([&] {
              view.run({tensor({1, 2}, {1, 2})}, donating({0}));
            }),
            "input 0 (%x) is donated, but output 0 (%y) is a view of it");
}

// The text lets %b take the memory of %a, but reads %a after %b has been written.
TEST_F(DonatedInputs, ValueThatIsReadAfterItsMemoryWasReusedIsAnError) {
  const std::string text = R"(
program main(%x: f32[4]) -> (%b) {
  slot %a: f32[4]
  slot %b: f32[4]
  !e = record_event stream=0
  %a = allocate
  copy %x -> %a
  %b = allocate reuse=(%a)
  copy %x -> %b
  check %a
  free %a
})";
  const std::string error = userErrorOf([&] { Executable(programOf(text), context); });
  EXPECT_NE(error.find("%a is used after a value that reuses its memory has been written"),
            std::string::npos)
      << error;
}

}  // namespace
}  // namespace heddle::host::donated_inputs_cpu_test
