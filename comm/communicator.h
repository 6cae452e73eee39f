#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/base/dtype.h"
#include "ir/types/sharding.h"

namespace heddle::comm {

enum class CollectiveKind : uint8_t {
  Allreduce,
  Reduce,
  Broadcast,
  Allgather,
  Gather,
  Scatter,
  ReduceScatter,
  AllToAll,
  AllToAllV,
  Barrier,
  Send,
  Recv
};
std::string_view name(CollectiveKind kind);

// One operation on buffers that the caller owns and keeps alive until it is done. `count` is in
// elements and is equal on all ranks of the communicator, as are `root`, `dtype` and `reduce`:
//   Allreduce      send[count]           -> recv[count]
//   Reduce         send[count]           -> the root's recv[count]
//   Broadcast      the root's send[count] -> recv[count]
//   Allgather      send[count]           -> recv[size * count], rank r's part at r * count
//   Gather         send[count]           -> the root's recv[size * count]
//   Scatter        the root's send[size * count] -> recv[count]: rank r gets part r
//   ReduceScatter  send[size * count]    -> recv[count]: rank r gets the reduced part r
//   AllToAll       send[size * count]    -> recv[size * count]: part r goes to rank r, which has it
//                                           at the sender's rank * count
//   AllToAllV      the same with parts of send_counts[r] elements to and recv_counts[r] from
//                  rank r, one after the other in rank order; both lists have `size` entries,
//                  `count` is not looked at. What a rank sends to another is what that one expects.
//   Barrier        no data; done when every rank has got there
//   Send           send[count]           to `peer`
//   Recv           recv[count]           from `peer`
// A buffer that only the root has may be null elsewhere, and is not looked at there.
//
// In place is allowed where a rank's result lies exactly on what it is made of: send == recv of an
// allreduce, and on the root of a reduce or broadcast; a rank's own part of the larger buffer of an
// allgather, gather, scatter or reduce-scatter. Never in an all-to-all. Else buffers are apart.
//
// An allreduce leaves the same bits on every rank. Bool sums to "any" and multiplies to "all";
// integers wrap around in their own type; Avg is for floats; f8 types can only be moved.
//
// On host memory (in-process, MPI) and in-process on one GPU, reductions run in rank order, so
// results have the same bits in every run and on all of these transports; F16 and BF16 are combined
// in f32 and rounded once; a NaN wins a minimum or a maximum. NCCL combines in an order of its own
// that depends on sizes and topology, may round them at every step, and says nothing of NaN in a
// minimum or maximum: results agree with the others within rounding only.
struct Operation {
  CollectiveKind kind = CollectiveKind::Allreduce;
  const void* send = nullptr;
  void* recv = nullptr;
  int64_t count = 0;  // 0 is legal: the operation only keeps the order
  DType dtype = DType::F32;
  ReduceOp reduce = ReduceOp::Sum;
  int peer = -1;  // rank within the communicator
  int root = -1;  // rank within the communicator
  // AllToAllV: the lists are the caller's, and alive until the operation is done.
  std::span<const int64_t> send_counts = {};
  std::span<const int64_t> recv_counts = {};
};

using Ticket = int64_t;

// One rank's end of one team. Every member posts the same collectives in the same order; sends and
// receives match by order between a pair. Not thread-safe: one thread posts, and the same or
// another one tests, not both at once.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // true: post() enqueues on a native device stream (a cudaStream_t) and that stream orders it;
  // the buffers are device memory; test() is not used.
  // false: post() begins the operation at once on host memory and test() tells when it is done.
  virtual bool isStreamOrdered() const = 0;

  // Begins the operations together: their sends and receives are matched as one group, so a ring
  // of sends and receives cannot deadlock. Several collectives in one are under way at once where
  // the transport can, in one launch with NCCL; none touches what another writes. `stream` is the
  // native stream when isStreamOrdered(). Returns without waiting for peers when not
  // stream-ordered.
  virtual Ticket post(std::span<const Operation> group, void* stream) = 0;

  // Makes progress and tells whether the group is complete. Throws UserError when a peer has
  // failed or the transport reports an error (with the API's name and string).
  virtual bool test(Ticket ticket) = 0;

  // Stream-ordered: whether what waits for peers holds SMs meanwhile, so that two communicators
  // whose collectives begin in different orders on two ranks would wait for each other forever.
  // False where only streams wait: such collectives may run beside any others that are posted in
  // one order.
  virtual bool holdsDevice() const { return true; }

  // Stream-ordered transports whose work may wait for a peer on the device: throws UserError when
  // it never will end by itself, because a peer is gone or the transport has met an error, and then
  // ends it. Any thread, at any time; never blocks. For those who wait for a stream.
  virtual void probe() {}
};

// By what means of a GPU a collective moves data, where the transport has the choice; others do not
// look at it. Equal on all ranks of a team.
struct Carrier {
  // Most thread blocks (each on an SM of its own) that a collective may take on a GPU, where the
  // transport runs kernels; 0: its own choice.
  int32_t ctas = 0;
  // 1 and up: the GPUs' copy engines move it, where each GPU of the team reaches the memory of all
  // others; no SM is taken but for the moment of a sum. Elsewhere kernels do, as if this were 0.
  // Collectives of different copy channels of a team may be under way at once. Only for kinds that
  // mayCopy().
  int32_t copy_channel = 0;
  auto operator<=>(const Carrier&) const = default;
};

// What a World owns for its job monitor (comm/monitor/job_monitor.h), which stands above it.
class WorldMonitor {
 public:
  virtual ~WorldMonitor() = default;
  // This rank cannot go on, because of `reason`.
  virtual void fail(const std::string& reason) noexcept = 0;
};

// A rank of the job, and the small host-side exchange a job needs to agree on things. Every member
// calls these in the same order. Blocking. May be called from one thread at a time.
class World {
 public:
  World();
  virtual ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string transport() const = 0;  // "in-process", "mpi", "nccl", "single"

  // Each rank's bytes, by rank.
  virtual std::vector<std::string> exchange(const std::string& mine) = 0;
  void barrier() { exchange(""); }

  // The communicator of the team in which this rank is; `members` are world ranks in team order and
  // contain this rank. Collective over `members`; made in the same order on all of them. A barrier
  // of the members follows the initialisation, before anyone posts.
  virtual std::unique_ptr<Communicator> communicator(const std::vector<int>& members) = 0;

  // The same for all teams of a partition of the job at once, collective over the whole job:
  // `members` is this rank's team, empty (and the result nullptr) for a rank in none. Where the
  // transport can split a communicator this is cheaper than making each on its own.
  virtual std::unique_ptr<Communicator> split(const std::vector<int>& members,
                                              const Carrier& carrier) {
    static_cast<void>(carrier);
    return members.empty() ? nullptr : communicator(members);
  }
  std::unique_ptr<Communicator> split(const std::vector<int>& members) {
    return split(members, {});
  }

  // This rank cannot go on: peers that wait, now or later, get UserError with `reason` and this
  // rank's number instead of waiting forever. Never blocks, may be called from any thread.
  virtual void abort(const std::string& reason) noexcept = 0;

  // Why this rank should wait for nobody any longer, as far as it has heard; empty while the job is
  // well. Never blocks, any thread.
  virtual std::string fault() const { return {}; }

  // The job has failed and peers hear of it in another way (comm/monitor/job_monitor.h): what this
  // rank waits for, now or later, throws UserError with `reason`. Never ends the process.
  // Afterwards a World of MPI makes no more calls of MPI, and buffers of unfinished operations may
  // be freed. Where ranks share their state it is abort().
  virtual void interrupt(const std::string& reason) noexcept { abort(reason); }

  // Returns the monitor that this World owns. The first call creates it with `make`, which may wait
  // for the other ranks. Thread-safe.
  WorldMonitor& monitor(const std::function<std::unique_ptr<WorldMonitor>()>& make);

  // This rank leaves the job because of an exception, which says `why`: the others' UserError has
  // it. For a program's catch while the World is there; without it the others hear who has left,
  // as soon as the exception has unwound the World. Ends no process, waits for no rank.
  virtual void fail(const std::string& why) noexcept;

 protected:
  // Every destructor of a derived class calls this first: the monitor calls interrupt() until then.
  void closeMonitor() noexcept;
  bool hasMonitor() const;
  // What fail() was told, if it was called.
  std::optional<std::string> failure() const;

 private:
  std::mutex making_mutex_;           // held while the monitor is created
  mutable std::mutex monitor_mutex_;  // guards the next two; no call waits while it holds it
  std::unique_ptr<WorldMonitor> monitor_;
  std::optional<std::string> failure_;
};

// Reduces `count` elements of `dtype`: dst = srcs[0] op srcs[1] op ..., in that order; dst may be
// one of srcs. Host memory. Avg divides by srcs.size() at the end.
void reduceOnHost(void* dst, std::span<const void* const> srcs, int64_t count, DType dtype,
                  ReduceOp op);

}  // namespace heddle::comm
