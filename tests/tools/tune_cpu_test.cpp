// Tests tuning. A fake timer chooses each candidate in turn. No test depends on a time.
#include <gtest/gtest.h>

#include <algorithm>

#include "host/device/cpu/cpu_device.h"
#include "host/device/kernel_choices.h"
#include "host/executable.h"
#include "tests/host/executable_common.h"
#include "tests/host/faulty_device.h"
#include "tools/tune/kernel_runs.h"
#include "tools/tune/tune.h"
#include "tools/tune/tune_report.h"

namespace heddle::tools::tune_cpu_test {
namespace {

using host::testing::deviceFloats;
using host::testing::floatsOf;
using host::testing::programOf;

// A kernel in a loop, and one in each branch of a condition that only a run decides.
constexpr const char* kProgram = R"(
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

constexpr int64_t kRows = 4;
constexpr int64_t kColumns = 32;
const SizeBindings kSizes = {{"n", kRows}, {"m", kColumns}};

// Multiples of 1/8. All sums below are exact in f32, so the order of a reduction does not matter.
std::vector<float> input() {
  std::vector<float> x;
  for (int i = 0; i < kRows * kColumns; ++i) x.push_back(static_cast<float>(i * 5 % 17 - 8) / 8);
  return x;
}

std::vector<float> expected(bool flag) {
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

TEST_F(Tuning, EveryChoiceGivesTheRightNumbers) {
  size_t most = 0;
  for (const TunedKernel& kernel : tuned(0)) most = std::max(most, kernel.rows.size());
  ASSERT_GE(most, 3u);
  for (size_t fastest = 0; fastest < most; ++fastest) {
    const std::vector<TunedKernel> kernels = tuned(fastest);
    ASSERT_EQ(kernels.size(), 3u);  // the loop and both branches
    for (const TunedKernel& kernel : kernels) {
      EXPECT_EQ(kernel.chosen, std::min(fastest, kernel.rows.size() - 1)) << kernel.name;
    }
    expectRight(optionsWith(choicesOf(kernels), true));
  }
}

TEST_F(Tuning, RealTimerMeasuresEveryCandidate) {
  for (const TunedKernel& kernel : tune(program_, kSizes, 1, *device_, images_, {})) {
    for (const TunedKernel::Row& row : kernel.rows) {
      EXPECT_EQ(row.fault, "") << kernel.name << row.parameters;
      EXPECT_GT(row.seconds, 0) << kernel.name << row.parameters;
      EXPECT_GE(row.runs, kFirstRounds) << kernel.name << row.parameters;
    }
  }
}

TEST_F(Tuning, FaultyCandidatesAreReportedAndNeverChosen) {
  TuneOptions options;
  options.makeTimer = [](const host::LaunchedKernel&, const std::vector<codegen::Candidate>& all,
                         std::vector<TunedKernel::Row>& rows) {
    rows.back().fault = "wrong results: on purpose";
    return std::make_unique<FakeTimer>(all.size(), all.size() - 1);
  };
  const std::vector<TunedKernel> kernels = tune(program_, kSizes, 1, *device_, images_, options);
  for (const TunedKernel& kernel : kernels) {
    EXPECT_NE(kernel.chosen, kernel.rows.size() - 1);
    EXPECT_EQ(kernel.rows.back().runs, 0);
  }
  EXPECT_NE(tuneText({{"p.hostir", kernels}}).find("; wrong results: on purpose, "),
            std::string::npos);
  EXPECT_NE(tuneCsv({{"p.hostir", kernels}}).find(",wrong results: on purpose,0,"),
            std::string::npos);
}

TEST_F(Tuning, KernelWithoutAUsableCandidateIsAnError) {
  TuneOptions options;
  options.makeTimer = [](const host::LaunchedKernel&, const std::vector<codegen::Candidate>& all,
                         std::vector<TunedKernel::Row>& rows) {
    for (TunedKernel::Row& row : rows) row.fault = "does not compile: on purpose";
    return std::make_unique<FakeTimer>(all.size(), 0);
  };
  EXPECT_EQ(
      host::testing::userErrorOf([&] { tune(program_, kSizes, 1, *device_, images_, options); }),
      "kernel center: no candidate can be used; the first one does not compile: on purpose");
}

TEST_F(Tuning, StoredChoicesAreNotMeasuredAgain) {
  const Choices stored = choicesOf(tuned(1));
  TuneOptions options;
  options.measured = Measured::Unknown;
  options.find = [&](const std::string& key) { return std::optional(stored.at(key)); };
  options.makeTimer = [](const auto&, const auto&, auto&) -> std::unique_ptr<CandidateTimer> {
    ADD_FAILURE() << "a stored choice was measured";
    return nullptr;
  };
  EXPECT_EQ(choicesOf(tune(program_, kSizes, 1, *device_, images_, options)), stored);
  // A choice that names no candidate of this version is measured again.
  options.find = [](const std::string&) { return std::optional<std::string>("loops lanes=3"); };
  int measured = 0;
  options.makeTimer = [&](const host::LaunchedKernel&, const std::vector<codegen::Candidate>& all,
                          std::vector<TunedKernel::Row>&) {
    ++measured;
    return std::make_unique<FakeTimer>(all.size(), 0);
  };
  tune(program_, kSizes, 1, *device_, images_, options);
  EXPECT_EQ(measured, 3);
}

// The kernels of the program are so small that a launch takes longer than everything else.
TEST_F(Tuning, KernelsWithEqualPredictionsNeedNoMeasurement) {
  TuneOptions options;
  options.measured = Measured::Different;
  options.makeTimer = [](const host::LaunchedKernel&, const std::vector<codegen::Candidate>& all,
                         std::vector<TunedKernel::Row>&) {
    return std::make_unique<FakeTimer>(all.size(), 1);
  };
  int different = 0;
  for (const int64_t columns : {kColumns, int64_t{20000}}) {
    for (const TunedKernel& kernel :
         tune(program_, {{"n", kRows}, {"m", columns}}, 1, *device_, images_, options)) {
      const auto [least, most] = std::minmax_element(
          kernel.rows.begin(), kernel.rows.end(),
          [](const auto& a, const auto& b) { return a.predicted < b.predicted; });
      EXPECT_GT(least->predicted, 0);
      const bool is_different = most->predicted > 1.03 * least->predicted;
      EXPECT_EQ(areDifferent(kernel.rows), is_different);
      EXPECT_EQ(kernel.origin,
                is_different ? TunedKernel::Origin::Measured : TunedKernel::Origin::Alike);
      EXPECT_EQ(kernel.chosen, is_different ? 1u : 0u);
      EXPECT_EQ(kernel.rows[0].runs > 0, is_different);
      different += is_different ? 1 : 0;
    }
  }
  EXPECT_GT(different, 0);
  EXPECT_LT(different, 6);
}

TEST_F(Tuning, ChoicesOfOtherDevicesOrSizesAreIgnored) {
  Choices foreign;
  for (const auto& [key, parameters] : choicesOf(tuned(1))) {
    std::string other = key;
    std::reverse(other.begin(), other.end());
    foreign[other] = parameters;
  }
  expectRight(optionsWith(foreign, false));
  const std::string error =
      host::testing::userErrorOf([&] { expectRight(optionsWith(foreign, true)); });
  EXPECT_NE(error.find("kernel center has no choice for these sizes on this device"),
            std::string::npos)
      << error;
  const auto other_device = host::makeCpuDevice({.threads = 3, .adversarial_seed = 3});
  EXPECT_NE(choicesOf(tune(program_, kSizes, 1, *other_device, images_, {})).begin()->first,
            choicesOf(tuned(0)).begin()->first);
  EXPECT_NE(choicesOf(tune(program_, {{"n", 5}, {"m", kColumns}}, 1, *device_, images_, {})),
            choicesOf(tuned(0)));
}

// The choice that the program makes is stronger than a tuned one.
TEST_F(Tuning, ForcedCandidatesAreLeftOut) {
  program_.kernels[host::KernelId(0)].candidate = "0";
  const std::vector<TunedKernel> kernels = tuned(1);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "double");
  expectRight(optionsWith(choicesOf(kernels), true));
}

// Every allocation of the measurement fails once.
TEST_F(Tuning, ExhaustedMemoryNamesTheKernelAndTheOperand) {
  host::testing::FaultyDevice device;
  std::string errors;
  const auto visit = [&](const host::LaunchedKernel& kernel) {
    const std::vector<codegen::Candidate> all = kernel.candidates();
    bool fails = true;
    for (int64_t call = 0; fails; ++call) {
      device.failAt(call);
      try {
        KernelRuns(kernel, all, device, images_, 0);
      } catch (const UserError& error) {
        if (error.code() == ErrorCode::OutOfMemory) errors += std::string(error.what()) + "\n";
      }
      fails = device.hasFailed();
      device.repair();
    }
  };
  host::forEachLaunchedKernel(program_, kSizes, 0, 1, device.kind(), host::Launches::First, visit);
  for (const char* operand : {"input %x: ", "output %y (512 bytes): ", "the workspace (",
                              "the block that replaces the contents of the caches (33554432 "
                              "bytes): "}) {
    const std::string text = fmt::format("tuning kernel center: cannot allocate {}", operand);
    EXPECT_NE(errors.find(text), std::string::npos) << text << "\n" << errors;
  }
}

// Runs only the first kernel.
class ForgetfulDevice : public host::testing::FaultyDevice {
 public:
  void launch(host::KernelHandle kernel, const codegen::LaunchStage& stage, const std::byte* args,
              host::Stream stream, const host::Issue& issue) override {
    if (launches_++ == 0) FaultyDevice::launch(kernel, stage, args, stream, issue);
  }

 private:
  int launches_ = 0;
};

// The right results are 0, which is also what unwritten memory often holds.
TEST_F(Tuning, CandidateThatWritesNothingIsLeftOut) {
  const host::Program program = programOf(R"(
kernel @zero {
  fusion zero(%x: f32[n, m]) {
    %y = sub(%x, %x)
    return %y
  }
}
program p(%x: f32[n, m]) -> (%y) with n = 4, m = 32 {
  slot %y: f32[n, m]
  %y = allocate
  launch @zero(%x) -> (%y)
}
)");
  ForgetfulDevice device;
  const auto visit = [&](const host::LaunchedKernel& kernel) {
    const std::vector<codegen::Candidate> all = kernel.candidates();
    ASSERT_GE(all.size(), 2u);
    const std::vector<std::string> faults = KernelRuns(kernel, all, device, images_, 0).faults();
    EXPECT_EQ(faults[0], "");
    for (size_t i = 1; i < faults.size(); ++i) {
      EXPECT_TRUE(faults[i].starts_with("wrong results: element 0 of output 0 is ")) << faults[i];
    }
  };
  host::forEachLaunchedKernel(program, kSizes, 0, 1, device.kind(), host::Launches::First, visit);
}

TEST(TuneChoices, FileIsWrittenAndRead) {
  const Choices choices = {{std::string(64, 'a'), "loops lanes=4"},
                           {std::string(64, '0'), "passes"}};
  EXPECT_EQ(parseChoices(printChoices(choices, "cpu"), "file"), choices);
  const auto errorOf = [](const std::string& text) {
    return host::testing::userErrorOf([&] { parseChoices(text, "file"); });
  };
  EXPECT_EQ(errorOf(""), "file:1: expected 'heddle choices 1'");
  EXPECT_EQ(errorOf("heddle choices 2\n"), "file:1: expected 'heddle choices 1'");
  const std::string header = "heddle choices 1\n";
  const std::string expected =
      "file:2: expected a key of 64 hexadecimal digits and parameters such as 'loops unroll=2'";
  for (const std::string& line :
       {std::string("abc loops"), std::string(64, 'g') + " loops", std::string(64, 'a'),
        std::string(64, 'a') + " a b", std::string(65, 'a') + " loops"}) {
    EXPECT_EQ(errorOf(header + line + "\n"), expected) << line;
  }
  EXPECT_EQ(parseChoices(header + "\n# comment\n", "file"), Choices());
}

}  // namespace
}  // namespace heddle::tools::tune_cpu_test
