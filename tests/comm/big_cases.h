#pragma once

#include <cstdlib>

#include "tests/comm/conformance.h"

// Counts beyond 2^31 on host memory. One rank's buffers take 4 GiB.
namespace heddle::comm::conformance {

constexpr int64_t kBig = (int64_t{1} << 31) + 5;

// Element i of what a rank has.
inline int8_t bigElement(int rank, int64_t i) {
  return static_cast<int8_t>((i % 251 + 7 * rank) % 113 - 56);
}

class BigBuffer {
 public:
  BigBuffer() : data_(static_cast<int8_t*>(std::malloc(kBig))) {}
  ~BigBuffer() { std::free(data_); }
  BigBuffer(const BigBuffer&) = delete;
  BigBuffer& operator=(const BigBuffer&) = delete;
  int8_t* data() { return data_; }
  void fill(int rank) {
    for (int64_t i = 0; i < kBig; ++i) data_[i] = bigElement(rank, i);
  }
  template <class Value>
  void expect(const char* what, const Value& value) const {
    for (int64_t i = 0; i < kBig; ++i) {
      if (data_[i] == value(i)) continue;
      ADD_FAILURE() << what << ": element " << i << " is " << int{data_[i]} << ", expected "
                    << int{value(i)};
      return;
    }
  }

 private:
  int8_t* data_;
};

inline void runBig(Rank& rank) {
  const int size = rank.world.size();
  std::vector<int> team;
  for (int i = 0; i < size; ++i) team.push_back(i);
  const auto comm = rank.world.communicator(team);
  const int me = comm->rank(), previous = (me + size - 1) % size;
  BigBuffer from, to;
  ASSERT_NE(from.data(), nullptr);
  ASSERT_NE(to.data(), nullptr);
  from.fill(me);
  const Operation ring[] = {
      {CollectiveKind::Send, from.data(), nullptr, kBig, DType::I8, ReduceOp::Sum, (me + 1) % size},
      {CollectiveKind::Recv, nullptr, to.data(), kBig, DType::I8, ReduceOp::Sum, previous}};
  runGroup(rank, *comm, ring);
  to.expect("ring", [&](int64_t i) { return bigElement(previous, i); });

  Operation op{CollectiveKind::Broadcast, from.data(), to.data(), kBig, DType::I8};
  op.root = size - 1;
  runGroup(rank, *comm, {&op, 1});
  to.expect("broadcast", [&](int64_t i) { return bigElement(size - 1, i); });

  // All of it to the next rank.
  std::vector<int64_t> sends(team.size(), 0), receives(team.size(), 0);
  sends[static_cast<size_t>((me + 1) % size)] = kBig;
  receives[static_cast<size_t>(previous)] = kBig;
  op = {CollectiveKind::AllToAllV, from.data(), to.data(), 0, DType::I8};
  op.send_counts = sends;
  op.recv_counts = receives;
  runGroup(rank, *comm, {&op, 1});
  to.expect("all-to-all-v", [&](int64_t i) { return bigElement(previous, i); });

  op = {CollectiveKind::Allreduce, from.data(), from.data(), kBig, DType::I8, ReduceOp::Max};
  runGroup(rank, *comm, {&op, 1});
  from.expect("allreduce", [&](int64_t i) {
    int8_t most = bigElement(0, i);
    for (int r = 1; r < size; ++r) most = std::max(most, bigElement(r, i));
    return most;
  });
  rank.world.barrier();
}

}  // namespace heddle::comm::conformance
