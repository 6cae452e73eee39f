// Tests tuning. A fake timer chooses each candidate in turn. No test depends on a time.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/tools/tuning.h"

namespace heddle::tools::tune_cpu_test {
namespace {

using tuning::FakeTimer;
using tuning::kColumns;
using tuning::kRows;
using tuning::kSizes;

class Tune : public tuning::Tuning {};

TEST_F(Tune, EveryChoiceGivesTheRightNumbers) {
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

TEST_F(Tune, RealTimerMeasuresEveryCandidate) {
  for (const TunedKernel& kernel : tune(program_, kSizes, 1, *device_, images_, {})) {
    for (const TunedKernel::Row& row : kernel.rows) {
      EXPECT_EQ(row.fault, "") << kernel.name << row.parameters;
      EXPECT_GT(row.seconds, 0) << kernel.name << row.parameters;
      EXPECT_GE(row.runs, 1) << kernel.name << row.parameters;
    }
  }
}

TEST_F(Tune, StoredChoicesAreNotMeasuredAgain) {
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
TEST_F(Tune, KernelsWithEqualPredictionsNeedNoMeasurement) {
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

TEST_F(Tune, ChoicesOfOtherDevicesOrSizesAreIgnored) {
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
TEST_F(Tune, ForcedCandidatesAreLeftOut) {
  program_.kernels[host::KernelId(0)].candidate = "0";
  const std::vector<TunedKernel> kernels = tuned(1);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "double");
  expectRight(optionsWith(choicesOf(kernels), true));
}

TEST_F(Tune, EveryMeasuredKernelIsAnnounced) {
  TuneOptions options;
  int announced = 0;
  int timers = 0;
  options.on_kernel = [&] { ++announced; };
  options.makeTimer = [&](const host::LaunchedKernel&, const std::vector<codegen::Candidate>& all,
                          std::vector<TunedKernel::Row>&) {
    EXPECT_EQ(announced, ++timers);
    return std::make_unique<FakeTimer>(all.size(), 0);
  };
  tune(program_, kSizes, 1, *device_, images_, options);
  EXPECT_EQ(announced, 3);
}

// Another rank has chosen the last candidate of each kernel.
class TuneAgreed : public Tune {
 protected:
  TuneAgreed() { theirs_.agreed = keyedChoicesOf(tuned(100)); }
  std::vector<TunedKernel> tunedAs(size_t fastest) {
    theirs_.makeTimer = [this, fastest](const host::LaunchedKernel&,
                                        const std::vector<codegen::Candidate>& all,
                                        std::vector<TunedKernel::Row>&) {
      ++measured_;
      return std::make_unique<FakeTimer>(all.size(), fastest);
    };
    return tune(program_, kSizes, 1, *device_, images_, theirs_);
  }

  TuneOptions theirs_;
  int measured_ = 0;
};

TEST_F(TuneAgreed, EqualDevicesTakeTheChoicesOfTheOtherRank) {
  for (const TunedKernel& kernel : tunedAs(0)) {
    EXPECT_EQ(kernel.chosen, kernel.rows.size() - 1) << kernel.name;
    EXPECT_EQ(kernel.origin, TunedKernel::Origin::Agreed) << kernel.name;
  }
  EXPECT_EQ(measured_, 0);
}

// The candidates of a pointwise kernel give the same bits. Those of the other kernels add in
// different orders.
TEST_F(TuneAgreed, OtherDevicesMeasureCandidatesThatGiveTheSameBits) {
  for (KeyedChoice& each : theirs_.agreed) each.key = "key of another device";
  int pointwise = 0;
  for (const TunedKernel& kernel : tunedAs(0)) {
    const bool is_pointwise = kernel.name == "double";
    pointwise += is_pointwise ? 1 : 0;
    EXPECT_EQ(kernel.chosen, is_pointwise ? 0 : kernel.rows.size() - 1) << kernel.name;
  }
  EXPECT_EQ(pointwise, 1);
  EXPECT_EQ(measured_, 1);
}

TEST_F(TuneAgreed, CandidateThatThisDeviceLacksIsAnError) {
  theirs_.agreed[0].parameters = "loops lanes=3";
  const std::string error = host::testing::userErrorOf([&] { tunedAs(0); });
  EXPECT_TRUE(
      error.starts_with("kernel center: another rank has chosen the candidate 'loops "
                        "lanes=3', which the device of this rank (cpu (2 threads, "))
      << error;
}

}  // namespace
}  // namespace heddle::tools::tune_cpu_test
