#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "comm/communicator.h"
#include "tests/comm/conformance/buffer.h"
#include "tests/comm/conformance/expected.h"

// Runs the cases that every transport must pass, on any kind of memory.
namespace heddle::comm::conformance {

struct Rank {
  World& world;
  Memory& memory;
  // reduces_in_rank_order: the transport reduces in the order that comm/communicator.h defines.
  // NCCL uses its own order.
  bool reduces_in_rank_order = true;
};

constexpr int kYields = 50;

inline void finish(Rank& rank, Communicator& comm, Ticket ticket) {
  if (comm.isStreamOrdered()) return rank.memory.synchronize();
  // On a busy machine, a thread that only yields would use up its share of time and then delay the
  // other ranks. The loop therefore sleeps after some yields.
  for (int i = 0; !comm.test(ticket); ++i) {
    if (i < kYields) std::this_thread::yield();
    if (i >= kYields) std::this_thread::sleep_for(std::chrono::microseconds(10));
  }
}

inline void runGroup(Rank& rank, Communicator& comm, std::span<const Operation> group) {
  finish(rank, comm, comm.post(group, rank.memory.stream()));
}

// The expected results of one rank in all rounds of a case. Each round shifts the numbers by one
// element (see contribution() in values.h), so one array serves all rounds.
class Expected {
 public:
  Expected(const Case& c, const std::vector<int>& team, int me)
      : dtype_(c.dtype), parts_(partsOf(c, me, static_cast<int>(team.size()))) {
    for (const Part& part : parts_) {
      const int64_t count = part.count + c.repeats - 1;
      numbers_.emplace_back(static_cast<size_t>(count * sizeOf(c.dtype)));
      putAll(numbers_.back().data(), c.dtype, count, [&](int64_t i) {
        return part.from < 0 ? reduced(c.dtype, c.op, team, part.first + i, 0)
                             : contribution(c.dtype, c.op, team[part.from], part.first + i, 0);
      });
    }
  }

  // Reports the first element that differs. Returns true if no element differs.
  bool check(const std::string& what, const unsigned char* got, int round, double tolerance) const {
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      if (!expectElements(what, dtype_, got + part.at * sizeOf(dtype_),
                          numbers_[i].data() + round * sizeOf(dtype_), part.count, part.at,
                          tolerance)) {
        return false;
      }
    }
    return true;
  }

 private:
  DType dtype_;
  std::vector<Part> parts_;
  std::vector<std::vector<unsigned char>> numbers_;
};

inline double toleranceOf(const Rank& rank, const Case& c) {
  if (c.op != ReduceOp::Avg || rank.reduces_in_rank_order) return 0.0;
  return c.dtype == DType::BF16 ? 0.02 : c.dtype == DType::F16 ? 0.003 : 1e-6;
}

// Repeats one collective on the same buffers, with new input values in each round.
inline void runCase(Rank& rank, Communicator& comm, const std::vector<int>& team, const Case& c) {
  const int me = comm.rank();
  const Sizes sizes = sizesOf(c, me, comm.size());
  Buffer send(rank.memory, c.dtype, sizes.sent);
  Buffer recv(rank.memory, c.dtype, sizes.received);
  const int64_t given = sizes.sent + c.repeats - 1, element = sizeOf(c.dtype);
  unsigned char* numbers = rank.memory.staging(static_cast<size_t>(given * element));
  putAll(numbers, c.dtype, given,
         [&](int64_t i) { return contribution(c.dtype, c.op, team[me], i, 0); });
  const Expected expected(c, team, me);
  const double tolerance = toleranceOf(rank, c);
  // In a rooted collective only the root has both a send and a receive buffer.
  const bool in_place = c.in_place && sizes.sent > 0 && sizes.received > 0;
  const Buffer& result = in_place ? send : recv;
  Operation op{c.kind, send.data(), result.data(), c.count, c.dtype, c.op};
  op.root = c.root;
  op.send_counts = sizes.send_counts;
  op.recv_counts = sizes.recv_counts;
  if (sizes.sent == 0) op.send = nullptr;
  if (sizes.received == 0) op.recv = nullptr;
  const std::string what = describeCase(c, team, me);
  // After an error this rank still runs all rounds, because the other ranks wait for it. It reports
  // only the first error.
  bool good = true;
  for (int round = 0; round < c.repeats; ++round) {
    send.upload(numbers + round * element);
    recv.poison();
    runGroup(rank, comm, {&op, 1});
    good = good && expected.check(what, result.read(what), round, tolerance);
  }
  if (in_place) return;
  expectElements(what + ": what was sent", c.dtype, send.read(what),
                 numbers + (c.repeats - 1) * element, sizes.sent, 0, 0.0);
}

// Runs every collective on all ranks and on the teams along each axis of a mesh.
void runCollectives(Rank& rank);
// Runs groups of sends and receives in a ring, together with an allreduce. A job of one rank sends
// to itself.
void runTransfers(Rank& rank);
// Runs barriers alone, and in a group with other collectives.
void runBarriers(Rank& rank);
// Runs several collectives at the same time on two communicators of one team.
void runOverlapped(Rank& rank);
// Runs World::exchange() and World::barrier().
void runExchange(Rank& rank);
// Checks the order and the rounding of reductions that comm/communicator.h guarantees.
void runOrder(Rank& rank);
// Makes wrong calls and requires that each one is rejected.
void runMisuse(Rank& rank);

inline void runEverything(Rank& rank) {
  runExchange(rank);
  runCollectives(rank);
  runTransfers(rank);
  runBarriers(rank);
  runOverlapped(rank);
  if (rank.reduces_in_rank_order) runOrder(rank);
  runMisuse(rank);
}

}  // namespace heddle::comm::conformance

#include "tests/comm/conformance/cases.h"
