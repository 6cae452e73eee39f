#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "ir/base/error.h"
#include "ir/types/mesh.h"
#include "tests/comm/conformance/conformance.h"

namespace heddle::comm::conformance {

inline std::vector<int> wholeJob(const World& world) {
  std::vector<int> team;
  for (int i = 0; i < world.size(); ++i) team.push_back(i);
  return team;
}

inline std::vector<int> teamAlong(const DeviceMesh& mesh, int rank, std::vector<MeshAxis> axes) {
  std::vector<int> team;
  for (int64_t member : mesh.team(rank, axes)) team.push_back(static_cast<int>(member));
  return team;
}

// Returns the teams to which this rank belongs along the axes of several meshes. All ranks must
// create their teams in this order.
inline std::vector<std::vector<int>> teamsAlongAxes(const World& world) {
  std::vector<std::vector<int>> teams;
  if (world.size() % 2 != 0) return teams;
  DeviceMesh mesh;
  mesh.name = "m";
  const auto add = [&](std::vector<MeshAxis> axes) {
    // A second mesh may give the same teams as the first one. Then all ranks skip the repetition.
    const std::vector<int> team = teamAlong(mesh, world.rank(), std::move(axes));
    if (std::find(teams.begin(), teams.end(), team) == teams.end()) teams.push_back(team);
  };
  if (isFullSuite() && world.size() % 4 == 0) {
    mesh.axes = {{MeshAxis::Z, 2}, {MeshAxis::Y, 2}, {MeshAxis::X, world.size() / 4}};
    add({MeshAxis::X});
    add({MeshAxis::Y});
    add({MeshAxis::Z});
    add({MeshAxis::Z, MeshAxis::X});
  }
  mesh.axes = {{MeshAxis::Y, 2}, {MeshAxis::X, world.size() / 2}};
  add({MeshAxis::X});
  add({MeshAxis::Y});
  return teams;
}

inline void runCollectives(Rank& rank) {
  const auto run = [&](Communicator& comm, const std::vector<int>& team, bool whole) {
    EXPECT_EQ(comm.size(), static_cast<int>(team.size()));
    EXPECT_EQ(team[comm.rank()], rank.world.rank());
    for (Case c : allCases(comm.size())) {
      if (!isFullSuite() && !whole) {
        if (c.count > 37) continue;
        c.repeats = std::min(c.repeats, 2);
      }
      runCase(rank, comm, team, c);
    }
  };
  const std::vector<int> whole = wholeJob(rank.world);
  run(*rank.world.communicator(whole), whole, true);
  for (const std::vector<int>& team : teamsAlongAxes(rank.world)) {
    run(*rank.world.split(team), team, false);
  }
}

inline void runBarriers(Rank& rank) {
  const auto comm = rank.world.communicator(wholeJob(rank.world));
  const int size = comm->size();
  Buffer mark(rank.memory, DType::I64, 1), marks(rank.memory, DType::I64, size);
  Buffer parts(rank.memory, DType::I64, size), swapped(rank.memory, DType::I64, size);
  for (int round = 0; round < 20; ++round) {
    const auto part = [&](double from, double to) { return 1000.0 * round + 30 * from + to; };
    mark.fill([&](int64_t) { return 100.0 * round + comm->rank(); });
    parts.fill([&](int64_t i) { return part(comm->rank(), static_cast<double>(i)); });
    const Operation barrier{CollectiveKind::Barrier};
    const Operation group[] = {
        {CollectiveKind::Allgather, mark.data(), marks.data(), 1, DType::I64},
        {CollectiveKind::AllToAll, parts.data(), swapped.data(), 1, DType::I64},
        barrier};
    runGroup(rank, *comm, group);
    runGroup(rank, *comm, {&barrier, 1});
    marks.expect("beside a barrier",
                 [&](int64_t i) { return 100.0 * round + static_cast<double>(i); });
    swapped.expect("an all-to-all beside a barrier",
                   [&](int64_t i) { return part(static_cast<double>(i), comm->rank()); });
  }
}

inline void runTransfers(Rank& rank) {
  const auto comm = rank.world.communicator(wholeJob(rank.world));
  const int me = comm->rank(), size = comm->size();
  const int next = (me + 1) % size, previous = (me + size - 1) % size;
  for (DType dtype : kAllDTypes) {
    if (isFloat8(dtype)) continue;  // the group contains an allreduce, and f8 cannot be reduced
    for (int64_t count : {int64_t{0}, int64_t{1}, int64_t{37}, kLarge}) {
      if (count == kLarge && dtype == DType::F16) continue;  // BF16 covers it
      Buffer a(rank.memory, dtype, count), b(rank.memory, dtype, count);
      Buffer from_a(rank.memory, dtype, count), from_b(rank.memory, dtype, count);
      Buffer sum(rank.memory, dtype, count);
      const auto value = [&](int owner, int which) {
        return [=](int64_t i) { return contribution(dtype, ReduceOp::Sum, owner, i, which); };
      };
      a.fill(value(me, 1));
      b.fill(value(me, 2));
      // The first send to a rank matches its first receive, the second send its second receive.
      // Other operations may be between them.
      const Operation group[] = {
          {CollectiveKind::Send, a.data(), nullptr, count, dtype, ReduceOp::Sum, next},
          {CollectiveKind::Recv, nullptr, from_a.data(), count, dtype, ReduceOp::Sum, previous},
          {CollectiveKind::Allreduce, a.data(), sum.data(), count, dtype, ReduceOp::Max, -1},
          {CollectiveKind::Recv, nullptr, from_b.data(), count, dtype, ReduceOp::Sum, previous},
          {CollectiveKind::Send, b.data(), nullptr, count, dtype, ReduceOp::Sum, next}};
      runGroup(rank, *comm, group);
      from_a.expect("first transfer", value(previous, 1));
      from_b.expect("second transfer", value(previous, 2));
      sum.expect("allreduce in the group", [&](int64_t i) {
        double most = value(0, 1)(i);
        for (int r = 1; r < size; ++r) most = std::fmax(most, value(r, 1)(i));
        return most;
      });
    }
  }
}

inline void runOverlapped(Rank& rank) {
  const std::vector<int> team = wholeJob(rank.world);
  const auto one = rank.world.communicator(team);
  const auto two = rank.world.communicator(team);
  constexpr int64_t kCount = 5000;
  constexpr int kPosts = 8;
  std::vector<std::unique_ptr<Buffer>> data;
  std::vector<Ticket> tickets;
  for (int i = 0; i < kPosts; ++i) {
    data.push_back(std::make_unique<Buffer>(rank.memory, DType::F32, kCount));
    data.back()->fill([&](int64_t k) {
      return contribution(DType::F32, ReduceOp::Sum, team[one->rank()], k, i);
    });
  }
  for (int i = 0; i < kPosts; ++i) {
    const Operation op{CollectiveKind::Allreduce, data[i]->data(), data[i]->data(), kCount};
    Communicator& comm = i % 2 == 0 ? *one : *two;
    tickets.push_back(comm.post({&op, 1}, rank.memory.stream()));
  }
  // Even and odd ranks wait for the tickets in opposite order.
  for (int i = 0; i < kPosts; ++i) {
    const int which = rank.world.rank() % 2 == 0 ? i : kPosts - 1 - i;
    finish(rank, which % 2 == 0 ? *one : *two, tickets[which]);
  }
  for (int i = 0; i < kPosts; ++i) {
    data[i]->expect("overlapped",
                    [&](int64_t k) { return reduced(DType::F32, ReduceOp::Sum, team, k, i); });
  }
}

inline void runExchange(Rank& rank) {
  for (int round = 0; round < 20; ++round) {
    const auto text = [&](int r) { return std::string(r * 3, 'a' + r) + std::to_string(round); };
    const std::vector<std::string> all = rank.world.exchange(text(rank.world.rank()));
    EXPECT_EQ(static_cast<int>(all.size()), rank.world.size());
    for (int r = 0; r < static_cast<int>(all.size()); ++r) EXPECT_EQ(all[r], text(r));
    rank.world.barrier();
  }
}

inline void runOrder(Rank& rank) {
  const std::vector<int> team = wholeJob(rank.world);
  const auto comm = rank.world.communicator(team);
  const int size = comm->size();
  // In rank order, the large numbers cancel before the last rank adds its small number. In another
  // order the small number is lost.
  const auto term = [&](int r) { return r == 0 ? 1e30 : r == 1 ? -1e30 : 0.25 * r; };
  Buffer wide(rank.memory, DType::F32, 1000);
  wide.fill([&](int64_t) { return term(comm->rank()); });
  const Operation sum{CollectiveKind::Allreduce, wide.data(), wide.data(), 1000};
  runGroup(rank, *comm, {&sum, 1});
  float expected = static_cast<float>(term(0));
  for (int r = 1; r < size; ++r) expected += static_cast<float>(term(r));
  wide.expect("rank order", [&](int64_t) { return expected; });

  // Each small number is half a unit in the last place of 1. A sum that is rounded at each step
  // would lose it.
  const auto small = [&](int r) { return r == 0 ? 1.0 : 0.00390625; };
  Buffer narrow(rank.memory, DType::BF16, 1000);
  narrow.fill([&](int64_t) { return small(comm->rank()); });
  const Operation round{CollectiveKind::Allreduce, narrow.data(), narrow.data(), 1000, DType::BF16};
  runGroup(rank, *comm, {&round, 1});
  narrow.expect("bf16 is rounded once", [&](int64_t) { return 1.0 + 0.00390625 * (size - 1); });
}

inline void expectUserError(const std::string& part, const std::function<void()>& act) {
  try {
    act();
    ADD_FAILURE() << "no error that says: " << part;
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

// Requires that an aborted job reports `why`: probe() after some time, and then each post. The
// posted work must end, so that the stream of `memory` completes.
inline void expectAborted(const std::string& why, Communicator& comm, const Operation& operation,
                          Memory& memory) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  expectUserError(why, [&] {
    while (std::chrono::steady_clock::now() < deadline) {
      comm.probe();
      std::this_thread::yield();
    }
  });
  memory.synchronize();
  expectUserError(why, [&] { comm.post({&operation, 1}, memory.stream()); });
}

inline void runMisuse(Rank& rank) {
  const auto comm = rank.world.communicator(wholeJob(rank.world));
  const int size = comm->size();
  Buffer data(rank.memory, DType::F32, 4);
  const auto post = [&](Operation op) {
    return [&comm, &rank, op] { comm->post({&op, 1}, rank.memory.stream()); };
  };
  Operation send{CollectiveKind::Send, data.data(), nullptr, 4, DType::F32, ReduceOp::Sum, size};
  expectUserError("peer", post(send));
  send.peer = -1;
  expectUserError("peer", post(send));
  Operation op{CollectiveKind::Allreduce, data.data(), data.data(), -1};
  expectUserError("negative", post(op));
  op.count = INT64_MAX / 2;
  expectUserError("count", post(op));
  op.count = 4;
  op.send = nullptr;
  expectUserError("no send buffer", post(op));
  op = {CollectiveKind::Allreduce, data.data(), data.data(), 1, DType::I64, ReduceOp::Avg};
  expectUserError("average", post(op));
  op.dtype = DType::F8E4M3;
  op.reduce = ReduceOp::Sum;
  expectUserError("only be moved", post(op));
  Operation rooted{CollectiveKind::Broadcast, data.data(), data.data(), 4};
  expectUserError("root must be a rank", post(rooted));
  rooted.root = size;
  expectUserError("root must be a rank", post(rooted));
  rooted = {CollectiveKind::AllToAll, data.data(), data.data(), 4};
  expectUserError("cannot be in place", post(rooted));
  rooted.recv = nullptr;
  expectUserError("no receive buffer", post(rooted));
  std::vector<int64_t> counts(static_cast<size_t>(size) + 1, 0);
  Operation uneven{CollectiveKind::AllToAllV, data.data(), nullptr, 0};
  uneven.send_counts = uneven.recv_counts = counts;
  expectUserError("send counts for", post(uneven));
  counts.pop_back();
  counts[static_cast<size_t>(comm->rank())] = 1;
  std::vector<int64_t> none(counts.size(), 0);
  uneven.send_counts = counts;
  uneven.recv_counts = none;
  expectUserError("sends itself 1 elements and expects 0", post(uneven));
  counts[static_cast<size_t>(comm->rank())] = -1;
  uneven.recv_counts = counts;
  expectUserError("negative", post(uneven));
  World& world = rank.world;
  const int me = world.rank();
  expectUserError("twice", [&] { world.communicator({me, me}); });
  expectUserError("ranks 0 to", [&] { world.communicator({me, size}); });
  if (size > 1) expectUserError("not in it", [&] { world.communicator({(me + 1) % size}); });
  world.barrier();
}

}  // namespace heddle::comm::conformance
