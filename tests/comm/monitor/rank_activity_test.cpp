// Tests the phase and the run numbers of a rank if several Executables and threads have runs at the
// same time.
#include "comm/monitor/rank_activity.h"

#include <gtest/gtest.h>

#include <memory>

namespace heddle::comm::rank_activity_test {
namespace {

// Ids of chains of runs. The runs of one chain end in the order in which they began; runs of
// different chains may end in any order.
constexpr int64_t kDevice = 1, kOther = 2;

class RankActivity : public ::testing::Test {
 protected:
  RankPhase phase() const { return status_->phase; }
  int64_t finished() const { return status_->finished; }

  std::unique_ptr<RankStatus> status_ = std::make_unique<RankStatus>();
  comm::RankActivity activity_{*status_};
};

TEST_F(RankActivity, PhaseIsInRunUntilAllRunsHaveEnded) {
  EXPECT_EQ(phase(), RankPhase::Idle);
  const int64_t one = activity_.beginRun(1, 1, kDevice), two = activity_.beginRun(2, 2, 0);
  EXPECT_EQ(two, one + 1);
  activity_.endRun(two);
  EXPECT_EQ(phase(), RankPhase::Computing);
  EXPECT_EQ(finished(), 0);
  activity_.endRun(one);
  EXPECT_EQ(phase(), RankPhase::Done);
  EXPECT_EQ(finished(), 2);
}

TEST_F(RankActivity, EndOfARunEndsEarlierRunsOfItsChain) {
  activity_.beginRun(1, 1, kDevice);
  activity_.beginRun(2, 2, kOther);
  const int64_t three = activity_.beginRun(1, 1, kDevice);
  const int64_t four = activity_.beginRun(1, 1, kDevice);
  activity_.endRun(three);
  EXPECT_EQ(finished(), 1);
  EXPECT_FALSE(activity_.endRun(three));
  EXPECT_FALSE(activity_.endRun(1));
  EXPECT_EQ(phase(), RankPhase::Computing);
  EXPECT_TRUE(activity_.endRun(2));
  EXPECT_EQ(finished(), three);
  activity_.endRun(four);
  EXPECT_EQ(finished(), four);
  EXPECT_EQ(phase(), RankPhase::Done);
}

TEST_F(RankActivity, LocalRunsDoNotChangeTheRunNumber) {
  const int64_t run = activity_.beginRun(1, 1, kDevice);
  EXPECT_TRUE(activity_.endRun(activity_.beginLocalRun(2, -1)));
  EXPECT_EQ(phase(), RankPhase::Computing);
  EXPECT_EQ(status_->run, run);
  activity_.begin(Activity::Waiting);
  EXPECT_EQ(phase(), RankPhase::Communicating);
  activity_.begin(Activity::Compiling);
  EXPECT_EQ(phase(), RankPhase::Compiling);
  activity_.end(Activity::Waiting);
  activity_.end(Activity::Compiling);
  EXPECT_EQ(phase(), RankPhase::Computing);
  activity_.endRun(run);
  EXPECT_EQ(phase(), RankPhase::Done);
}

TEST_F(RankActivity, ResumeRevokesEndRuns) {
  activity_.resume();
  EXPECT_EQ(phase(), RankPhase::Idle);
  activity_.endRun(activity_.beginRun(1, 1, 0));
  activity_.endRuns();
  EXPECT_EQ(phase(), RankPhase::Ended);
  activity_.resume();
  EXPECT_EQ(phase(), RankPhase::Done);
}

TEST_F(RankActivity, RunsWithoutACommonNumberAreNotCompared) {
  const auto ahead = std::make_unique<RankStatus>();
  comm::RankActivity further(*ahead);
  for (int64_t run = 0; run < 70'000; ++run) {
    if (run < 70'000 - 65'536) activity_.endRun(activity_.beginRun(1, 7, 0));
    further.endRun(further.beginRun(1, 7, 0));
    ASSERT_EQ(firstDifferentRun(read(*status_, 0), read(*ahead, 1)), 0);
  }
  // So far all runs of both ranks have the same plan. Then one rank begins a run with another plan.
  while (status_->run < 69'998) activity_.endRun(activity_.beginRun(1, 7, 0));
  EXPECT_EQ(firstDifferentRun(read(*status_, 0), read(*ahead, 1)), 0);
  activity_.endRun(activity_.beginRun(1, 8, 0));
  EXPECT_EQ(firstDifferentRun(read(*status_, 0), read(*ahead, 1)), status_->run);
}

}  // namespace
}  // namespace heddle::comm::rank_activity_test
