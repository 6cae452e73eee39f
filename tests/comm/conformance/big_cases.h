#pragma once

#include <algorithm>
#include <vector>

#include "tests/comm/conformance/conformance.h"

// Cases with more than 2^31 elements, on any kind of memory. The buffers of one rank take 4 GiB.
namespace heddle::comm::conformance {

constexpr int64_t kBig = (int64_t{1} << 31) + 5;

// Returns element i of the input of a rank.
inline int8_t bigElement(int rank, int64_t i) {
  return static_cast<int8_t>((i % 251 + 7 * rank) % 113 - 56);
}

// A buffer of kBig elements. Writes and reads one piece at a time, because the memory may belong to
// a device.
class BigBuffer {
 public:
  explicit BigBuffer(Memory& memory) : memory_(memory), data_(memory.allocate(kBig)) {}
  ~BigBuffer() { memory_.release(data_); }
  BigBuffer(const BigBuffer&) = delete;
  BigBuffer& operator=(const BigBuffer&) = delete;
  void* data() { return data_; }

  void fill(int rank) {
    unsigned char* piece = memory_.staging(kPiece);
    pieces([&](int64_t begin, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        piece[i] = static_cast<unsigned char>(bigElement(rank, begin + i));
      }
      memory_.upload(static_cast<int8_t*>(data_) + begin, piece, static_cast<size_t>(count));
      memory_.synchronize();
    });
  }
  template <class Value>
  void expect(const char* what, const Value& value) {
    pieces([&](int64_t begin, int64_t count) {
      const unsigned char* piece =
          memory_.read(static_cast<int8_t*>(data_) + begin, static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i) {
        const auto got = static_cast<int8_t>(piece[i]);
        if (got == value(begin + i)) continue;
        ADD_FAILURE() << what << ": element " << begin + i << " is " << int{got} << ", expected "
                      << int{value(begin + i)};
        return;
      }
    });
  }

 private:
  template <class Visit>
  static void pieces(const Visit& visit) {
    for (int64_t begin = 0; begin < kBig; begin += kPiece) {
      visit(begin, std::min(kPiece, kBig - begin));
    }
  }

  static constexpr int64_t kPiece = int64_t{1} << 26;
  Memory& memory_;
  void* data_;
};

inline void runBig(Rank& rank) {
  const int size = rank.world.size();
  std::vector<int> team;
  for (int i = 0; i < size; ++i) team.push_back(i);
  const auto comm = rank.world.communicator(team);
  const int me = comm->rank(), next = (me + 1) % size, previous = (me + size - 1) % size;
  BigBuffer from(rank.memory), to(rank.memory);
  ASSERT_NE(from.data(), nullptr);
  ASSERT_NE(to.data(), nullptr);
  from.fill(me);
  const Operation ring[] = {
      {CollectiveKind::Send, from.data(), nullptr, kBig, DType::I8, ReduceOp::Sum, next},
      {CollectiveKind::Recv, nullptr, to.data(), kBig, DType::I8, ReduceOp::Sum, previous}};
  runGroup(rank, *comm, ring);
  to.expect("ring", [&](int64_t i) { return bigElement(previous, i); });

  Operation op{CollectiveKind::Broadcast, from.data(), to.data(), kBig, DType::I8};
  op.root = size - 1;
  runGroup(rank, *comm, {&op, 1});
  to.expect("broadcast", [&](int64_t i) { return bigElement(size - 1, i); });

  // Each rank sends all of its elements to the next rank.
  std::vector<int64_t> sends(team.size(), 0), receives(team.size(), 0);
  sends[static_cast<size_t>(next)] = kBig;
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
