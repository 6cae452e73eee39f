#include "comm/modules.h"
#include "ir/base/error.h"
#include "tests/comm/conformance/conformance.h"
#include "tests/comm/module_symbol.h"

namespace heddle::comm::conformance::mpi_mpi_test {
namespace {

// All tests share one World, because MPI cannot start twice. Every rank must run every test.
class MpiTransport : public ::testing::Test {
 public:
  static void SetUpTestSuite() {
    const auto entry =
        moduleSymbol<const MpiModule* (*)()>("libheddle_mpi.so", "heddleMpiModule", reason_);
    if (entry != nullptr) world_ = entry()->makeWorld();
    module_ = entry;
  }
  static void TearDownTestSuite() { world_.reset(); }
  void SetUp() override { ASSERT_NE(world_, nullptr) << reason_; }

 protected:
  static inline std::unique_ptr<World> world_;
  static inline const MpiModule* (*module_)() = nullptr;
  static inline std::string reason_;
};

TEST_F(MpiTransport, Conforms) {
  EXPECT_EQ(world_->transport(), "mpi");
  HostMemory memory;
  Rank rank{*world_, memory};
  runEverything(rank);
}

TEST_F(MpiTransport, PairsOfALargerJobConform) {
  // The teams overlap. All ranks create them in the same order.
  HostMemory memory;
  Rank rank{*world_, memory};
  for (int first = 0; first + 1 < world_->size(); ++first) {
    const std::vector<int> team = {first + 1, first};  // not in rank order
    if (world_->rank() != first && world_->rank() != first + 1) continue;
    const auto comm = world_->communicator(team);
    EXPECT_EQ(team[comm->rank()], world_->rank());
    for (Case c : allCases(comm->size())) {
      c.repeats = 1;
      runCase(rank, *comm, team, c);
    }
  }
  world_->barrier();
}

TEST_F(MpiTransport, SecondWorldSharesMpi) {
  const auto second = module_()->makeWorld();
  EXPECT_EQ(second->rank(), world_->rank());
  EXPECT_EQ(second->exchange(std::to_string(second->rank())).back(),
            std::to_string(second->size() - 1));
}

// While some ranks already create a team, another rank still waits for a collective in which all
// ranks must take part. The creation must not block this collective.
TEST_F(MpiTransport, CreationOfATeamDoesNotBlockOtherRanks) {
  std::vector<int> team;
  for (int i = 0; i < world_->size(); ++i) team.push_back(i);
  const auto comm = world_->communicator(team);
  for (int round = 0; round < 10; ++round) {
    std::vector<float> data(50000, 1.0f);
    const Operation op{CollectiveKind::Allreduce, data.data(), data.data(), 50000};
    const Ticket ticket = comm->post({&op, 1}, nullptr);
    const auto wait = [&] {
      while (!comm->test(ticket)) std::this_thread::yield();
    };
    if (world_->rank() == round % world_->size()) wait();
    const auto other = world_->communicator(team);
    wait();
    EXPECT_EQ(data.back(), static_cast<float>(team.size()));
  }
}

// If a rank expects another number of elements than the sender sends, it gets an error.
TEST_F(MpiTransport, DifferentCountsAreReported) {
  std::vector<int> team;
  for (int i = 0; i < world_->size(); ++i) team.push_back(i);
  const auto comm = world_->communicator(team);
  const auto size = static_cast<size_t>(comm->size());
  const int next = (comm->rank() + 1) % comm->size();
  const int previous = (comm->rank() + comm->size() - 1) % comm->size();
  if (next == previous) GTEST_SKIP() << "needs 3 ranks, the job has " << size;
  std::vector<float> from(8), to(8);
  std::vector<int64_t> sends(size, 0), receives(size, 0);
  sends[static_cast<size_t>(next)] = 3;
  receives[static_cast<size_t>(previous)] = 5;
  Operation op{CollectiveKind::AllToAllV, from.data(), to.data()};
  op.send_counts = sends;
  op.recv_counts = receives;
  const Ticket ticket = comm->post({&op, 1}, nullptr);
  expectUserError("sent 3 elements, not 5", [&] {
    while (!comm->test(ticket)) std::this_thread::yield();
  });
  world_->barrier();
}

TEST_F(MpiTransport, TruncationIsReported) {
  const auto comm = world_->communicator({world_->rank()});
  double from[8] = {}, to[4] = {};
  const Operation group[] = {{CollectiveKind::Send, from, nullptr, 8, DType::F64, ReduceOp::Sum, 0},
                             {CollectiveKind::Recv, nullptr, to, 4, DType::F64, ReduceOp::Sum, 0}};
  const Ticket send = comm->post({&group[0], 1}, nullptr);
  const Ticket receive = comm->post({&group[1], 1}, nullptr);
  while (!comm->test(send)) std::this_thread::yield();
  expectUserError("recv of 4 f64 from 0", [&] {
    while (!comm->test(receive)) std::this_thread::yield();
  });
}

TEST_F(MpiTransport, DifferentTeamsAreReported) {
  if (world_->size() != 3) GTEST_SKIP() << "needs 3 ranks, the job has " << world_->size();
  // Ranks 0 and 2 create the team {0, 2, 1}. Rank 1 creates the team {0, 1, 2}.
  const std::vector<int> mine =
      world_->rank() == 1 ? std::vector<int>{0, 1, 2} : std::vector<int>{0, 2, 1};
  expectUserError("creates a communicator of", [&] { world_->communicator(mine); });
  world_->barrier();
}

}  // namespace
}  // namespace heddle::comm::conformance::mpi_mpi_test
