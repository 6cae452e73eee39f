// Tests the rank correlation of predicted and measured times.
#include <gtest/gtest.h>

#include <limits>

#include "tools/tune/rank_correlation.h"
#include "tools/tune/tune_report.h"

namespace heddle::tools::rank_correlation_cpu_test {
namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::infinity();

TunedKernel kernelOf(const std::vector<double>& predicted, const std::vector<double>& measured) {
  TunedKernel kernel;
  for (size_t i = 0; i < predicted.size(); ++i) {
    TunedKernel::Row& row = kernel.rows.emplace_back();
    row.parameters = "loops";
    row.predicted = predicted[i];
    row.seconds = measured[i];
  }
  return kernel;
}

TEST(RankCorrelation, OnlyTheOrderMatters) {
  EXPECT_DOUBLE_EQ(*rankCorrelation({1, 2, 3, 4}, {10, 11, 500, 501}), 1);
  EXPECT_DOUBLE_EQ(*rankCorrelation({1, 2, 3, 4}, {9, 8, 7, 1}), -1);
  // The differences of the ranks are 0, 1, 1, 0, so 1 - 6 * 2 / (4 * 15) = 0.8.
  EXPECT_DOUBLE_EQ(*rankCorrelation({1, 2, 3, 4}, {1, 3, 2, 4}), 0.8);
}

// The values are those of Python's statistics.correlation() for the ranks 0, 1.5, 1.5, 3 and
// 0, 1, 2, 3; and for 2, 2, 0, 2 and 0, 1, 2.5, 2.5.
TEST(RankCorrelation, EqualElementsShareTheirRank) {
  EXPECT_NEAR(*rankCorrelation({1, 2, 2, 3}, {1, 2, 3, 4}), 0.9486832980505138, 1e-12);
  EXPECT_NEAR(*rankCorrelation({5, 5, 1, 5}, {1, 2, 3, 3}), -0.5443310539518174, 1e-12);
}

TEST(RankCorrelation, ConstantListsHaveNone) {
  EXPECT_FALSE(rankCorrelation({2, 2, 2}, {1, 2, 3}).has_value());
  EXPECT_FALSE(rankCorrelation({1, 2, 3}, {2, 2, 2}).has_value());
  EXPECT_FALSE(rankCorrelation({}, {}).has_value());
  EXPECT_FALSE(rankCorrelation({1}, {1}).has_value());
}

TEST(RankCorrelationOfModel, OnlyMeasuredCandidatesCount) {
  const TunedKernel good = kernelOf({1e-3, 2e-3, 3e-3}, {1e-3, kNotMeasured, 2e-3});
  const TunedKernel bad = kernelOf({1e-6, 2e-6}, {2e-6, 1e-6});
  const TunedKernel single = kernelOf({1e-6}, {kNotMeasured});
  // Both predictions are 1.00 us.
  const TunedKernel alike = kernelOf({1.0001e-6, 1.0002e-6}, {2e-6, 1e-6});
  const auto ranks = modelRanks({good, bad, single, alike});
  ASSERT_TRUE(ranks.has_value());
  EXPECT_EQ(ranks->kernels, 2);
  EXPECT_DOUBLE_EQ(ranks->mean, 0);
  EXPECT_EQ(ranks->candidates, 6);
  EXPECT_GT(ranks->all, 0);
  EXPECT_FALSE(modelRanks({single, alike}).has_value());
}

TEST(RankCorrelationOfModel, SummaryNamesBothCorrelationsAndTheFirstCandidatesOfAllFiles) {
  const TunedKernel good = kernelOf({1e-3, 2e-3}, {1e-3, 2e-3});
  TunedKernel slow = kernelOf({1e-3, 2e-3}, {2e-3, 1e-3});
  slow.chosen = 1;
  EXPECT_EQ(tuneSummary({{"a", {good}}, {"b", {slow}}}),
            "rank correlation of predicted and measured times: 0.00 within a kernel (mean of 2), "
            "0.00 over all 4 candidates\n"
            "first candidates: within 5 % of the fastest in 1 of 2 kernels; chosen / first time "
            "0.707 (geometric mean)\n");
  EXPECT_EQ(tuneSummary({{"a", {}}}), "");
}

}  // namespace
}  // namespace heddle::tools::rank_correlation_cpu_test
