#include <atomic>

#include "comm/in_process/worlds.h"
#include "ir/base/error.h"
#include "tests/comm/conformance/conformance.h"
#include "tests/comm/ranks.h"

namespace heddle::comm::conformance::in_process_test {
namespace {

class InProcess : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, InProcess,
                         ::testing::ValuesIn(isFullSuite() ? std::vector<int>{1, 2, 3, 4, 6, 8}
                                                           : std::vector<int>{1, 2, 3, 4, 6}));

TEST_P(InProcess, Conforms) {
  expectAllWell(runRanks(makeInProcessWorlds(GetParam()), [&](std::unique_ptr<World>& world) {
    EXPECT_EQ(world->transport(), "in-process");
    EXPECT_EQ(world->size(), GetParam());
    HostMemory memory;
    Rank rank{*world, memory};
    runEverything(rank);
  }));
}

// Teams along one axis or two axes of a mesh. All teams along the same axes run at the same time.
TEST(InProcessWorlds, TeamsOfThreeAxesConform) {
  DeviceMesh mesh;
  mesh.name = "m";
  mesh.axes = {{MeshAxis::Z, 2}, {MeshAxis::Y, 2}, {MeshAxis::X, 2}};
  using Axes = std::vector<MeshAxis>;
  expectAllWell(runRanks(makeInProcessWorlds(8), [&](std::unique_ptr<World>& world) {
    HostMemory memory;
    Rank rank{*world, memory};
    for (const Axes& axes : {Axes{MeshAxis::X}, Axes{MeshAxis::Y}, Axes{MeshAxis::Z},
                             Axes{MeshAxis::Z, MeshAxis::X}, Axes{MeshAxis::X, MeshAxis::Y}}) {
      const std::vector<int> team = teamAlong(mesh, world->rank(), axes);
      const auto comm = world->split(team);
      for (Case c : allCases(comm->size())) {
        if (c.count != 37 || (c.dtype != DType::I32 && c.dtype != DType::BF16)) continue;
        c.repeats = 2;
        runCase(rank, *comm, team, c);
      }
    }
  }));
}

TEST(InProcessWorlds, SingleConforms) {
  const auto world = makeSingleWorld();
  EXPECT_EQ(world->transport(), "single");
  HostMemory memory;
  Rank rank{*world, memory};
  runEverything(rank);
}

TEST(InProcessWorlds, ZeroRanksAreRejected) { EXPECT_THROW(makeInProcessWorlds(0), UserError); }

TEST(InProcessWorlds, PostDoesNotWaitForOtherRanks) {
  // One thread acts for both ranks once the teams exist, so any wait would hang.
  std::vector<std::unique_ptr<World>> worlds = makeInProcessWorlds(2);
  std::unique_ptr<Communicator> first, second;
  std::thread other([&] { second = worlds[1]->communicator({0, 1}); });
  first = worlds[0]->communicator({0, 1});
  other.join();
  float a = 1.0f, b = 2.0f;
  const Operation op_a{CollectiveKind::Allreduce, &a, &a, 1};
  const Operation op_b{CollectiveKind::Allreduce, &b, &b, 1};
  const Ticket ticket_a = first->post({&op_a, 1}, nullptr);
  EXPECT_FALSE(first->test(ticket_a));
  const Ticket ticket_b = second->post({&op_b, 1}, nullptr);
  // This call completes the operation for both ranks, because the other rank may be busy.
  EXPECT_TRUE(first->test(ticket_a));
  EXPECT_TRUE(second->test(ticket_b));
  EXPECT_TRUE(first->test(ticket_a));
  EXPECT_EQ(a, 3.0f);
  EXPECT_EQ(b, 3.0f);
}

TEST(InProcessWorlds, BarrierWaitsForTheLastRank) {
  std::atomic<int> come{0};
  expectAllWell(runRanks(makeInProcessWorlds(4), [&](std::unique_ptr<World>& world) {
    const auto comm = world->communicator({0, 1, 2, 3});
    const Operation barrier{CollectiveKind::Barrier};
    for (int round = 1; round <= 50; ++round) {
      ++come;
      const Ticket ticket = comm->post({&barrier, 1}, nullptr);
      while (!comm->test(ticket)) std::this_thread::yield();
      EXPECT_GE(come.load(), 4 * round);
    }
  }));
}

TEST(InProcessWorlds, SplitReturnsNullForRanksOfNoTeam) {
  expectAllWell(runRanks(makeInProcessWorlds(3), [&](std::unique_ptr<World>& world) {
    const bool in = world->rank() != 1;
    const auto comm = world->split(in ? std::vector<int>{2, 0} : std::vector<int>{});
    EXPECT_EQ(comm != nullptr, in);
    if (comm) {
      EXPECT_EQ(comm->rank(), world->rank() == 2 ? 0 : 1);
    }
    EXPECT_EQ(world->fault(), "");
    world->barrier();
  }));
}

}  // namespace
}  // namespace heddle::comm::conformance::in_process_test
