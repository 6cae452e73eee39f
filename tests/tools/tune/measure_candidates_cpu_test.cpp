// Tests the measurement of candidates with a fake timer.
#include <gtest/gtest.h>

#include <map>

#include "ir/base/error.h"
#include "tools/tune/measure_candidates.h"

namespace heddle::tools::measure_candidates_cpu_test {
namespace {

// Returns given times in turn, and counts the runs.
class FakeTimer : public CandidateTimer {
 public:
  explicit FakeTimer(std::vector<std::vector<double>> times) : times_(std::move(times)) {}
  double run(size_t candidate) override {
    order.push_back(candidate);
    const std::vector<double>& own = times_.at(candidate);
    return own[static_cast<size_t>(runs[candidate]++) % own.size()];
  }
  std::map<size_t, int> runs;
  std::vector<size_t> order;

 private:
  std::vector<std::vector<double>> times_;
};

size_t winner(FakeTimer& timer, size_t count, const std::vector<size_t>& usable) {
  return winnerOf(measureCandidates(count, usable, timer), usable);
}

TEST(MeasureCandidates, FastestCandidateWins) {
  for (size_t fastest = 0; fastest < 4; ++fastest) {
    std::vector<std::vector<double>> times(4, {2.0});
    times[fastest] = {1.0};
    FakeTimer timer(times);
    EXPECT_EQ(winner(timer, 4, {0, 1, 2, 3}), fastest);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(timer.runs[i], kFirstRounds);
  }
}

TEST(MeasureCandidates, CandidatesRunAlternately) {
  FakeTimer timer({{1}, {1}, {1}});
  measureCandidates(3, {0, 1, 2}, timer);
  for (size_t i = 0; i < timer.order.size(); ++i) EXPECT_EQ(timer.order[i], i % 3);
}

TEST(MeasureCandidates, TimeLimitEndsTheMeasurementAfterARound) {
  FakeTimer timer({{3}, {2}});
  const std::vector<CandidateResult> results = measureCandidates(2, {0, 1}, timer, 6);
  EXPECT_EQ(winnerOf(results, {0, 1}), 1u);
  EXPECT_EQ(timer.runs[0], 2);
  EXPECT_EQ(timer.runs[1], 2);
}

TEST(MeasureCandidates, ClearLosersLeaveEarly) {
  // The first two are near each other and too noisy to settle. The third one is far behind.
  FakeTimer timer({{1.0, 1.1}, {1.05, 1.14}, {1.3}});
  const std::vector<CandidateResult> results = measureCandidates(3, {0, 1, 2}, timer);
  EXPECT_EQ(results[0].runs, kMostRounds);
  EXPECT_EQ(results[1].runs, kMostRounds);
  EXPECT_EQ(results[2].runs, kFirstRounds);
}

TEST(MeasureCandidates, VerySlowCandidatesRunTwice) {
  FakeTimer timer({{5, 1}, {2.1}, {1.9}});
  const std::vector<CandidateResult> results = measureCandidates(3, {0, 1, 2}, timer);
  EXPECT_GE(results[0].runs, kFirstRounds);
  EXPECT_EQ(results[1].runs, 2);
  EXPECT_EQ(results[2].runs, kFirstRounds);
}

TEST(MeasureCandidates, SteadyTimesEndTheMeasurement) {
  FakeTimer timer({{1.00, 1.01}, {1.05, 1.06}});
  const std::vector<CandidateResult> results = measureCandidates(2, {0, 1}, timer);
  EXPECT_LT(results[0].runs, kMostRounds);
  EXPECT_GE(results[0].runs, kFirstRounds);
  EXPECT_NEAR(results[0].seconds, 1.005, 0.006);
  EXPECT_NEAR(results[1].seconds, 1.055, 0.006);
}

TEST(MeasureCandidates, OneSlowRunDoesNotDecide) {
  FakeTimer timer({{1.0, 1.0, 9.0, 1.0, 1.0, 1.0, 1.0}, {1.1}});
  EXPECT_EQ(winner(timer, 2, {0, 1}), 0u);
}

TEST(MeasureCandidates, FirstCandidateWinsUnlessAnotherIsClearlyFaster) {
  FakeTimer near({{1.0}, {0.985}});
  EXPECT_EQ(winner(near, 2, {0, 1}), 0u);
  FakeTimer clear({{1.0}, {0.975}});
  EXPECT_EQ(winner(clear, 2, {0, 1}), 1u);
}

TEST(MeasureCandidates, OnlyUsableCandidatesRun) {
  FakeTimer timer({{0.1}, {2}, {0.1}, {1}});
  EXPECT_EQ(winner(timer, 4, {1, 3}), 3u);
  EXPECT_EQ(timer.runs.size(), 2u);
  const std::vector<size_t> none;
  EXPECT_THROW(winnerOf({}, none), InternalError);
}

}  // namespace
}  // namespace heddle::tools::measure_candidates_cpu_test
