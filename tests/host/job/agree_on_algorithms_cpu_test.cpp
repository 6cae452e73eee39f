// Tests which rank chooses the algorithms of matrix products, and that all ranks get the same
// algorithms.
#include <gtest/gtest.h>

#include <atomic>

#include "comm/monitor/job_monitor.h"
#include "host/job/agree_on_algorithms.h"
#include "host/job/inject_fault.h"
#include "ir/base/check.h"
#include "tests/host/executable_common.h"
#include "tests/host/rank_harness.h"

namespace heddle::host::agree_on_algorithms_cpu_test {
namespace {

TEST(AgreeOnAlgorithms, SingleRankAsksItsDeviceEachTime) {
  AlgorithmAgreement agreement(nullptr, true);
  int asked = 0;
  const auto ask = [&](const std::string& question) {
    ++asked;
    return question == "hard" ? "" : "a " + question;
  };
  EXPECT_EQ(agreement.choose({"x", "hard"}, {}, ask), (AlgorithmChoices{{"x", "a x"}}));
  EXPECT_EQ(agreement.choose({"x"}, {}, ask), (AlgorithmChoices{{"x", "a x"}}));
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(agreement.all(), (AlgorithmChoices{{"x", "a x"}}));
}

// Rank 2 has no matrix product. The matrix product of rank 1 differs from that of rank 0.
TEST(AgreeOnAlgorithms, RankZeroChoosesOnceForEachSize) {
  auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, 3);
  std::atomic<int> asked{0};
  testing::onEachWorld(worlds, [&](int rank, std::unique_ptr<comm::World>& world) {
    AlgorithmAgreement agreement(world.get(), true);
    const auto ask = [&](const std::string& question) {
      ++asked;
      return fmt::format("{} by {}", question, rank);
    };
    const std::set<std::string> mine[] = {{"even"}, {"uneven"}, {}};
    const AlgorithmChoices expected{{"even", "even by 0"}, {"uneven", "uneven by 0"}};
    EXPECT_EQ(agreement.choose(mine[rank], {{"n", 7}}, ask), expected);
    // For sizes on which the ranks have agreed, a rank gets the known choices without
    // communication, even for another question.
    if (rank == 1) {
      EXPECT_EQ(agreement.choose({"strided"}, {{"n", 7}}, ask), expected);
    }
    const AlgorithmChoices more = agreement.choose({"other"}, {{"n", 8}}, ask);
    EXPECT_EQ(more.at("other"), "other by 0");
    EXPECT_EQ(more.size(), 3u);
  });
  EXPECT_EQ(asked, 3);
}

TEST(AgreeOnAlgorithms, LocalProgramsSendNothing) {
  auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, 2);
  AlgorithmAgreement agreement(worlds[0].get(), false);
  EXPECT_TRUE(agreement.choose({"x"}, {}, [](const std::string& q) { return q; }).empty());
}

// Rank 1 never takes part. After the time limit `patience` the job must end.
TEST(AgreeOnAlgorithms, RankThatStaysAwayIsReported) {
  auto worlds = makeInProcessWorldsFor(DeviceKind::Cpu, 2);
  std::vector<std::string> errors(2);
  const auto onRank = [&](int rank, std::unique_ptr<comm::World>& world) {
    comm::JobMonitorOptions options;
    options.patience = 0.3;
    comm::JobMonitor monitor(*world, options);
    const TaskFault fault(*world, parseFault("rank=1,task=algorithms,stall"),
                          [&] { return monitor.failed(); });
    AlgorithmAgreement agreement(world.get(), true);
    const auto ask = [](const std::string& question) { return question; };
    errors[static_cast<size_t>(rank)] =
        testing::userErrorOf([&] { agreement.choose({"x"}, {}, ask); });
  };
  EXPECT_THROW(testing::onEachWorld(worlds, onRank), UserError) << "the job has failed";
  for (const char* part :
       {"rank 1 is lost before its first run, while it agrees with the other ranks on the "
        "algorithms of matrix products: nothing has moved on any rank for 0.3 s, and rank 0 waits "
        "for it: rank 0 agrees with the other ranks on the algorithms of matrix products\n",
        ": waiting, before its first run, while it agrees with the other ranks on the algorithms "
        "of matrix products and waits for rank 1"}) {
    EXPECT_NE(errors[0].find(part), std::string::npos) << errors[0];
  }
}

}  // namespace
}  // namespace heddle::host::agree_on_algorithms_cpu_test
