// Tests ranks that disagree, abort or leave. Each test would hang if a rank kept waiting.
#include <atomic>

#include "comm/in_process/worlds.h"
#include "ir/base/error.h"
#include "tests/comm/conformance/conformance.h"
#include "tests/comm/ranks.h"

namespace heddle::comm::conformance::in_process_faults_test {
namespace {

using WorldPtr = std::unique_ptr<World>;

void expectNames(const std::string& error, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(error.find(part), std::string::npos) << "no '" << part << "' in: " << error;
  }
}

void runOne(Communicator& comm, const Operation& op) {
  const Ticket ticket = comm.post({&op, 1}, nullptr);
  while (!comm.test(ticket)) std::this_thread::yield();
}

// Ranks 0 and 2 post `common`, rank 1 posts `odd`. The error of each rank must contain all `parts`.
void expectMismatch(const Operation& common, const Operation& odd,
                    const std::vector<std::string>& parts) {
  const auto errors = runRanks(makeInProcessWorlds(3), [&](WorldPtr& world) {
    const auto comm = world->communicator({0, 1, 2});
    std::vector<double> from(64), to(64);
    Operation op = world->rank() == 1 ? odd : common;
    op.send = from.data();
    op.recv = to.data();
    runOne(*comm, op);
  });
  for (const std::string& error : errors) {
    expectNames(error, {"team [0, 1, 2]", "rank 1 "});
    expectNames(error, parts);
  }
}

TEST(InProcessFaults, DifferentCollectivesAreReported) {
  const Operation reduce{CollectiveKind::Allreduce, nullptr, nullptr, 8};
  Operation odd = reduce;
  odd.count = 7;
  expectMismatch(reduce, odd, {"allreduce(sum) of 8 f32", "allreduce(sum) of 7 f32"});
  odd = reduce;
  odd.dtype = DType::F64;
  expectMismatch(reduce, odd, {"of 8 f32", "of 8 f64"});
  odd = reduce;
  odd.kind = CollectiveKind::Allgather;
  expectMismatch(reduce, odd, {"allreduce(sum) of 8 f32", "allgather of 8 f32"});
  odd = reduce;
  odd.reduce = ReduceOp::Max;
  expectMismatch(reduce, odd, {"allreduce(sum)", "allreduce(max)"});
}

TEST(InProcessFaults, DifferentRootsAreReported) {
  Operation common{CollectiveKind::Broadcast, nullptr, nullptr, 8};
  common.root = 0;
  Operation odd = common;
  odd.root = 2;
  expectMismatch(common, odd, {"broadcast of 8 f32 from 0", "broadcast of 8 f32 from 2"});
  common.kind = odd.kind = CollectiveKind::Reduce;
  expectMismatch(common, odd, {"reduce(sum) of 8 f32 to 0", "reduce(sum) of 8 f32 to 2"});
}

// Two ranks may have different count lists, but the count of the sender must equal that of the
// receiver.
TEST(InProcessFaults, DifferentCountsOfAnAllToAllVAreReported) {
  const auto errors = runRanks(makeInProcessWorlds(2), [&](WorldPtr& world) {
    const auto comm = world->communicator({0, 1});
    std::vector<double> from(8), to(8);
    const std::vector<int64_t> sends =
        world->rank() == 0 ? std::vector<int64_t>{1, 3} : std::vector<int64_t>{0, 2};
    const std::vector<int64_t> receives =
        world->rank() == 0 ? std::vector<int64_t>{1, 0} : std::vector<int64_t>{4, 2};
    Operation op{CollectiveKind::AllToAllV, from.data(), to.data(), 0, DType::F64};
    op.send_counts = sends;
    op.recv_counts = receives;
    runOne(*comm, op);
  });
  for (const std::string& error : errors) {
    expectNames(error, {"alltoallv of [1, 3] to [1, 0] f64", "alltoallv of [0, 2] to [4, 2] f64"});
  }
}

TEST(InProcessFaults, AbortSetsTheFaultOfTheJob) {
  auto worlds = makeInProcessWorlds(2);
  worlds[1]->abort("out of paper");
  expectNames(worlds[0]->fault(), {"rank 1", "out of paper"});
}

TEST(InProcessFaults, DifferentTransfersAreReported) {
  const auto errors = runRanks(makeInProcessWorlds(2), [&](WorldPtr& world) {
    const auto comm = world->communicator({0, 1});
    double data[8] = {};
    if (world->rank() == 0) {
      runOne(*comm, {CollectiveKind::Send, data, nullptr, 4, DType::F64, ReduceOp::Sum, 1});
    } else {
      runOne(*comm, {CollectiveKind::Recv, nullptr, data, 3, DType::F64, ReduceOp::Sum, 0});
    }
  });
  for (const std::string& error : errors) {
    expectNames(error, {"send of 4 f64 to 1", "recv of 3 f64 from 0"});
  }
}

TEST(InProcessFaults, AbortWakesExchange) {
  const auto errors = runRanks(makeInProcessWorlds(3), [&](WorldPtr& world) {
    if (world->rank() == 2) throw UserError("out of paper");
    world->barrier();
  });
  expectNames(errors[0], {"rank 2", "out of paper"});
  expectNames(errors[1], {"rank 2", "out of paper"});
}

TEST(InProcessFaults, AbortWakesTheCreationOfATeam) {
  const auto errors = runRanks(makeInProcessWorlds(3), [&](WorldPtr& world) {
    if (world->rank() == 1) throw UserError("out of paper");
    world->communicator({0, 1, 2});
  });
  expectNames(errors[0], {"rank 1", "out of paper", "[0, 1, 2]"});
  expectNames(errors[2], {"rank 1", "out of paper"});
}

TEST(InProcessFaults, AbortEndsTest) {
  const auto errors = runRanks(makeInProcessWorlds(3), [&](WorldPtr& world) {
    const auto comm = world->communicator({0, 1, 2});
    std::vector<float> data(100);
    if (world->rank() == 0) return world->abort("out of paper");
    runOne(*comm, {CollectiveKind::Allreduce, data.data(), data.data(), 100});
  });
  expectNames(errors[1], {"rank 0", "out of paper"});
  expectNames(errors[2], {"rank 0", "out of paper"});
}

TEST(InProcessFaults, CallsAfterAnAbortThrow) {
  auto worlds = makeInProcessWorlds(2);
  worlds[0]->abort("early");
  worlds[0]->abort("the first reason stays");
  for (const auto& act : std::vector<std::function<void()>>{[&] { worlds[1]->barrier(); },
                                                            [&] {
                                                              worlds[1]->communicator({0, 1});
                                                            }}) {
    try {
      act();
      ADD_FAILURE() << "no error";
    } catch (const UserError& error) {
      expectNames(error.what(), {"rank 0", "early"});
    }
  }
}

TEST(InProcessFaults, LeavingWakesWaitingRanks) {
  for (int leaver = 0; leaver < 3; ++leaver) {
    const auto errors = runRanks(makeInProcessWorlds(3), [&](WorldPtr& world) {
      const int rank = world->rank();
      const auto comm = world->communicator({0, 1, 2});
      std::vector<float> data(100);
      if (rank == leaver) {
        world.reset();
        return;
      }
      runOne(*comm, {CollectiveKind::Allreduce, data.data(), data.data(), 100});
    });
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == leaver) continue;
      expectNames(errors[rank], {"rank " + std::to_string(leaver), "left"});
    }
  }
}

TEST(InProcessFaults, LeavingWakesExchangeAndTeams) {
  const auto errors = runRanks(makeInProcessWorlds(3), [&](WorldPtr& world) {
    if (world->rank() == 2) return;
    if (world->rank() == 0) world->barrier();
    world->communicator({1, 2});
  });
  expectNames(errors[0], {"rank "});
  expectNames(errors[1], {"rank "});
}

// A rank that has completed its operations may leave while the other ranks continue.
TEST(InProcessFaults, LeavingAfterTheLastOperationIsNoFault) {
  expectAllWell(runRanks(makeInProcessWorlds(3), [&](WorldPtr& world) {
    const auto all = world->communicator({0, 1, 2});
    std::vector<float> data(100, 1.0f);
    const Operation op{CollectiveKind::Allreduce, data.data(), data.data(), 100};
    runOne(*all, op);
    if (world->rank() == 2) return;
    const auto pair = world->communicator({0, 1});
    for (int i = 0; i < 50; ++i) runOne(*pair, op);
  }));
}

// Each rank frees its buffers after the fault. No other rank may still copy from them; the address
// sanitizer would report this.
TEST(InProcessFaults, BuffersMayBeFreedAfterAFault) {
  for (int round = 0; round < 20; ++round) {
    runRanks(makeInProcessWorlds(3), [&](WorldPtr& world) {
      const auto comm = world->communicator({0, 1, 2});
      std::vector<float> data(20000, 1.0f);
      const Operation op{CollectiveKind::Allreduce, data.data(), data.data(), 20000};
      const Ticket ticket = comm->post({&op, 1}, nullptr);
      if (world->rank() == round % 3) {
        world->abort("gone");
        return;
      }
      while (!comm->test(ticket)) std::this_thread::yield();
    });
  }
}

}  // namespace
}  // namespace heddle::comm::conformance::in_process_faults_test
