#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "comm/communicator.h"
#include "tests/comm/conformance_expected.h"

// The cases every transport must pass, on any kind of memory.
namespace heddle::comm::conformance {

// Where the buffers of a rank live, and how to wait for a communicator.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* data) = 0;
  virtual void upload(void* to, const void* from, size_t bytes) = 0;
  virtual void download(void* to, const void* from, size_t bytes) = 0;
  virtual void* stream() = 0;
  virtual void synchronize() = 0;
};

class HostMemory : public Memory {
 public:
  void* allocate(size_t bytes) override { return std::malloc(bytes); }
  void release(void* data) override { std::free(data); }
  void upload(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void download(void* to, const void* from, size_t bytes) override { upload(to, from, bytes); }
  void* stream() override { return nullptr; }
  void synchronize() override {}
};

struct Rank {
  World& world;
  Memory& memory;
  // The transport promises the header's order of reduction (NCCL has its own).
  bool reduces_in_rank_order = true;
};

inline void finish(Rank& rank, Communicator& comm, Ticket ticket) {
  if (comm.isStreamOrdered()) return rank.memory.synchronize();
  while (!comm.test(ticket)) std::this_thread::yield();
}

inline void runGroup(Rank& rank, Communicator& comm, std::span<const Operation> group) {
  finish(rank, comm, comm.post(group, rank.memory.stream()));
}

// A buffer with a guard behind it.
class Buffer {
 public:
  Buffer(Memory& memory, DType dtype, int64_t count)
      : memory_(memory),
        dtype_(dtype),
        count_(count),
        bytes_(static_cast<size_t>(count * sizeOf(dtype))),
        data_(memory.allocate(bytes_ + kGuard)) {
    poison();
  }
  ~Buffer() { memory_.release(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }

  void poison() {
    const std::vector<unsigned char> bytes(bytes_ + kGuard, kPoison);
    memory_.upload(data_, bytes.data(), bytes.size());
  }
  // Element i becomes value(i).
  template <class Value>
  void fill(const Value& value) {
    std::vector<unsigned char> bytes(bytes_);
    for (int64_t i = 0; i < count_; ++i) put(bytes, dtype_, i, value(i));
    memory_.upload(data_, bytes.data(), bytes.size());
  }
  // Reports the first element that differs from value(i), bit for bit unless `tolerance`.
  template <class Value>
  void expect(const std::string& what, const Value& value, double tolerance = 0.0) const {
    std::vector<unsigned char> got(bytes_ + kGuard), wanted(bytes_);
    memory_.download(got.data(), data_, got.size());
    for (int64_t i = 0; i < count_; ++i) put(wanted, dtype_, i, value(i));
    for (int64_t i = 0; i < count_; ++i) {
      const size_t at = static_cast<size_t>(i * sizeOf(dtype_));
      if (std::memcmp(&got[at], &wanted[at], static_cast<size_t>(sizeOf(dtype_))) == 0) continue;
      const double a = get(got, dtype_, i), b = get(wanted, dtype_, i);
      if (std::fabs(a - b) <= tolerance * std::fabs(b)) continue;
      ADD_FAILURE() << what << ": element " << i << " of " << count_ << " is " << a << ", expected "
                    << b;
      return;
    }
    for (size_t i = bytes_; i < got.size(); ++i) {
      if (got[i] == kPoison) continue;
      ADD_FAILURE() << what << ": wrote past the end of " << count_ << " elements";
      return;
    }
  }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr unsigned char kPoison = 0xA5;
  Memory& memory_;
  DType dtype_;
  int64_t count_;
  size_t bytes_;
  void* data_;
};

// Repeats one collective on the same buffers with new numbers each time.
inline void runCase(Rank& rank, Communicator& comm, const std::vector<int>& team, const Case& c) {
  const int me = comm.rank(), size = comm.size();
  const Sizes sizes = sizesOf(c, me, size);
  Buffer send(rank.memory, c.dtype, sizes.sent);
  Buffer recv(rank.memory, c.dtype, sizes.received);
  const bool loose = c.op == ReduceOp::Avg && !rank.reduces_in_rank_order;
  const double tolerance = !loose                   ? 0.0
                           : c.dtype == DType::BF16 ? 0.02
                           : c.dtype == DType::F16  ? 0.003
                                                    : 1e-6;
  // Of a rooted one only the root has both.
  const bool in_place = c.in_place && sizes.sent > 0 && sizes.received > 0;
  const std::string what = describeCase(c, team, me);
  for (int seed = 0; seed < c.repeats; ++seed) {
    send.fill([&](int64_t i) { return contribution(c.dtype, c.op, team[me], i, seed); });
    recv.poison();
    Operation op{c.kind, send.data(), in_place ? send.data() : recv.data(), c.count, c.dtype, c.op};
    op.root = c.root;
    op.send_counts = sizes.send_counts;
    op.recv_counts = sizes.recv_counts;
    if (sizes.sent == 0) op.send = nullptr;
    if (sizes.received == 0) op.recv = nullptr;
    runGroup(rank, comm, {&op, 1});
    const Buffer& result = in_place ? send : recv;
    result.expect(
        what, [&](int64_t i) { return wanted(c, team, me, i, seed); }, tolerance);
  }
}

// Every collective on the whole job and on the teams along each axis of a mesh.
void runCollectives(Rank& rank);
// Groups of sends and receives: a ring, several at once, to itself, and beside a collective.
void runTransfers(Rank& rank);
// Barriers, alone and beside another collective.
void runBarriers(Rank& rank);
// Several collectives under way at once, on one team and on two.
void runOverlapped(Rank& rank);
// exchange() and barrier().
void runExchange(Rank& rank);
// The order and the rounding that the header promises.
void runOrder(Rank& rank);
// What a caller may not do.
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

#include "tests/comm/conformance_cases.h"
