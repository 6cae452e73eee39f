// Tests the choice of the fastest algorithm on a simulated GPU. If one algorithm runs for some
// time, the GPU becomes hot and lowers its clock.
#include "host/device/timed_choice.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

namespace heddle::host::timed_choice_test {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kLimitMs = 40;  // milliseconds of one algorithm after which the GPU is hot

class HotGpu : public AlgorithmStopwatch {
 public:
  struct Times {
    double cool;
    double hot;
  };

  explicit HotGpu(std::vector<Times> algorithms)
      : algorithms_(std::move(algorithms)), ran_(algorithms_.size(), 0) {}

  double first(size_t algorithm) override {
    if (algorithms_[algorithm].cool == kNever) return kNever;
    run(algorithm);
    return run(algorithm);
  }

  double mean(size_t algorithm, int runs) override {
    EXPECT_NE(algorithms_[algorithm].cool, kNever) << algorithm;
    run(algorithm);
    double sum = 0;
    for (int i = 0; i < runs; ++i) sum += run(algorithm);
    return sum / runs;
  }

  size_t winner() { return fastestAlgorithm(algorithms_.size(), *this); }
  double elapsed() const { return elapsed_; }
  double ran(size_t algorithm) const { return ran_[algorithm]; }

 private:
  double run(size_t algorithm) {
    if (algorithm != last_) alone_ = 0;
    last_ = algorithm;
    const Times& times = algorithms_[algorithm];
    const double ms = alone_ < kLimitMs ? times.cool : times.hot;
    alone_ += ms;
    elapsed_ += ms;
    ran_[algorithm] += ms;
    return ms;
  }

  std::vector<Times> algorithms_;
  std::vector<double> ran_;  // total milliseconds by algorithm
  size_t last_ = 0;
  double alone_ = 0;
  double elapsed_ = 0;
};

// The first two cases are matrix products measured on an H200. In the third case the clock does not
// fall.
TEST(TimedChoice, FastestSustainedAlgorithmWins) {
  EXPECT_EQ(HotGpu({{1.372, 1.510}, {1.369, 1.379}}).winner(), 1u);
  EXPECT_EQ(HotGpu({{2.424, 2.799}, {2.730, 2.729}}).winner(), 1u);
  EXPECT_EQ(HotGpu({{1.5, 1.5}, {1.3, 1.3}, {1.4, 1.4}}).winner(), 1u);
  EXPECT_EQ(HotGpu({{1.3, 1.5}, {1.4, 1.6}, {1.35, 1.7}}).winner(), 0u);
}

TEST(TimedChoice, FirstAlgorithmStaysUnlessAnotherIsClearlyFaster) {
  EXPECT_EQ(HotGpu({{1, 1.004}, {1, 1}}).winner(), 0u);
  EXPECT_EQ(HotGpu({{1, 1.006}, {1, 1}}).winner(), 1u);
  EXPECT_EQ(HotGpu({{0.0501, 1}, {0.05, 1}}).winner(), 0u);
  EXPECT_EQ(HotGpu({{0.0504, 1}, {0.05, 1}}).winner(), 1u);
}

TEST(TimedChoice, FirstAlgorithmAlwaysReachesTheFinal) {
  EXPECT_EQ(HotGpu({{1.4, 1.4}, {1, 1.6}, {1.05, 1.5}, {1.1, 1.6}, {1.1, 1.3}}).winner(), 0u);
}

TEST(TimedChoice, SlowAlgorithmsMissTheFinal) {
  EXPECT_EQ(HotGpu({{1, 1.6}, {1.2, 1.2}, {1.1, 1.5}}).winner(), 2u);
}

TEST(TimedChoice, ShortAndVeryLongRunsHaveNoFinal) {
  HotGpu brief({{0.09, 0.2}, {0.08, 0.3}});
  EXPECT_EQ(brief.winner(), 1u);
  EXPECT_LT(brief.elapsed(), 20);
  HotGpu slow({{400, 400}, {300, 300}});
  EXPECT_EQ(slow.winner(), 1u);
  EXPECT_LE(slow.elapsed(), 10 * 700);
}

TEST(TimedChoice, FailingAlgorithmsNeverWin) {
  EXPECT_EQ(HotGpu({{kNever, 0}, {2, 2}, {1, 1}}).winner(), 2u);
  EXPECT_EQ(HotGpu({{0.01, 0.01}, {kNever, 0}}).winner(), 0u);
  EXPECT_EQ(HotGpu({{kNever, 0}, {kNever, 0}}).winner(), 0u);
  EXPECT_EQ(HotGpu({{kNever, 0}}).winner(), 0u);
  EXPECT_EQ(HotGpu({}).winner(), 0u);
}

TEST(TimedChoice, FinalTakesHalfASecond) {
  const size_t count = 16;
  HotGpu gpu(std::vector<HotGpu::Times>(count, {1, 1.1}));
  EXPECT_EQ(gpu.winner(), 0u);
  size_t finalists = 0;
  double heats = 0;
  for (size_t i = 0; i < count; ++i) {
    finalists += gpu.ran(i) > 90 ? 1 : 0;
    heats += gpu.ran(i) > 90 ? 0 : gpu.ran(i);
  }
  EXPECT_EQ(finalists, 4u);
  EXPECT_LT(gpu.elapsed() - heats * count / (count - 4), 600);
}

}  // namespace
}  // namespace heddle::host::timed_choice_test
