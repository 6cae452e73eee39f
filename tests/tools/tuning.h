#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "host/device/cpu/cpu_device.h"
#include "host/executable.h"
#include "tests/host/executable_common.h"
#include "tools/tune/tune.h"

namespace heddle::tools::tuning {

using host::testing::deviceFloats;
using host::testing::floatsOf;
using host::testing::programOf;

// A kernel in a loop, and one in each branch of a condition that only a run decides.
inline constexpr const char* kProgram = R"(
kernel @center {
  fusion center(%x: f32[n, m]) {
    %s = sum(%x, axes=[1])
    %e = broadcast(%s, axes=[1])
    %y = sub(%x, %e)
    return %y
  }
}
kernel @double {
  fusion double(%x: f32[n, m]) {
    %y = add(%x, %x)
    return %y
  }
}
kernel @total {
  fusion total(%x: f32[n, m]) {
    %s = sum(%x, axes=[1])
    %e = broadcast(%s, axes=[1])
    %y = mul(%x, %e)
    return %y
  }
}
program p(%x: f32[n, m], %flag: i64) -> (%y) with n = 4, m = 32 {
  slot %t: f32[n, m]
  slot %y: f32[n, m]
  %y = allocate
  %t = allocate
  copy %x -> %t
  for i in 0 .. 2 {
    launch @center(%t) -> (%y)
    copy %y -> %t
  }
  if %flag > 0 {
    launch @double(%t) -> (%y)
  } else {
    launch @total(%t) -> (%y)
  }
  free %t
}
)";

inline constexpr int64_t kRows = 4;
inline constexpr int64_t kColumns = 32;
inline const SizeBindings kSizes = {{"n", kRows}, {"m", kColumns}};

// Multiples of 1/8. All sums below are exact in f32, so the order of a reduction does not matter.
inline std::vector<float> input() {
  std::vector<float> x;
  for (int i = 0; i < kRows * kColumns; ++i) x.push_back(static_cast<float>(i * 5 % 17 - 8) / 8);
  return x;
}

inline std::vector<float> expected(bool flag) {
  std::vector<float> y = input();
  const auto sumOf = [&](int64_t row) {
    float sum = 0;
    for (int64_t i = 0; i < kColumns; ++i) sum += y[static_cast<size_t>(row * kColumns + i)];
    return sum;
  };
  const auto forEachRow = [&](const auto& change) {
    for (int64_t row = 0; row < kRows; ++row) {
      const float sum = sumOf(row);
      for (int64_t i = 0; i < kColumns; ++i) {
        float& element = y[static_cast<size_t>(row * kColumns + i)];
        element = change(element, sum);
      }
    }
  };
  for (int i = 0; i < 2; ++i) forEachRow([](float x, float sum) { return x - sum; });
  forEachRow([&](float x, float sum) { return flag ? 2 * x : x * sum; });
  return y;
}

// The candidate `fastest`, or the last one if there are fewer, is fastest.
class FakeTimer : public CandidateTimer {
 public:
  FakeTimer(size_t count, size_t fastest) : fastest_(std::min(fastest, count - 1)) {}
  double run(size_t candidate) override { return candidate == fastest_ ? 1e-3 : 2e-3; }

 private:
  size_t fastest_;
};

class Tuning : public ::testing::Test {
 protected:
  std::vector<TunedKernel> tuned(size_t fastest) {
    TuneOptions options;
    options.makeTimer = [fastest](const host::LaunchedKernel&,
                                  const std::vector<codegen::Candidate>& all,
                                  std::vector<TunedKernel::Row>&) {
      return std::make_unique<FakeTimer>(all.size(), fastest);
    };
    return tune(program_, kSizes, 1, *device_, images_, options);
  }

  host::ExecutableOptions optionsWith(const Choices& choices, bool only) {
    host::ExecutableOptions options;
    options.kernel_choices = choices;
    options.choices_only = only;
    return options;
  }

  // Runs the program, and compares both branches with the expected numbers.
  void expectRight(const host::ExecutableOptions& options) {
    host::Executable executable(program_, {device_.get(), nullptr, &images_}, options);
    for (const bool flag : {false, true}) {
      const host::Outputs outputs = executable.run(
          {deviceFloats(*device_, input(), {kRows, kColumns}), Scalar(int64_t{flag ? 1 : 0})});
      outputs.wait();
      EXPECT_EQ(floatsOf(*device_, outputs[0]), expected(flag));
    }
  }

  host::Program program_ = programOf(kProgram);
  codegen::ImageCache images_;
  std::unique_ptr<host::Device> device_ =
      host::makeCpuDevice({.threads = 2, .adversarial_seed = 3});
};

}  // namespace heddle::tools::tuning
