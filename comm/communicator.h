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

// One operation on buffers that the caller owns and keeps alive until the operation has completed.
// `count` is in elements. `count`, `root`, `dtype` and `reduce` are equal on all ranks of the
// communicator:
//   Allreduce      send[count]           -> recv[count]
//   Reduce         send[count]           -> recv[count] of the root
//   Broadcast      send[count] of the root -> recv[count]
//   Allgather      send[count]           -> recv[size * count], the part of rank r at r * count
//   Gather         send[count]           -> recv[size * count] of the root
//   Scatter        send[size * count] of the root -> recv[count]: rank r gets part r
//   ReduceScatter  send[size * count]    -> recv[count]: rank r gets the reduced part r
//   AllToAll       send[size * count]    -> recv[size * count]: part r is sent to rank r, which
//                                           stores it at (rank of the sender) * count
//   AllToAllV      the same with parts of send_counts[r] elements to rank r and recv_counts[r]
//                  elements from rank r, in rank order without gaps. Both lists have `size`
//                  entries; `count` is ignored. The sender's count must equal the receiver's.
//   Barrier        no data; completes when every rank has posted it
//   Send           send[count]           to `peer`
//   Recv           recv[count]           from `peer`
// A buffer that only the root needs may be null on other ranks and is not read there.
//
// In place means that the result of a rank overwrites its own input:
//   allowed      send == recv of an allreduce, and on the root of a reduce or broadcast; the rank's
//                own part of the larger buffer of an allgather, gather, scatter or reduce-scatter
//   not allowed  an all-to-all or all-to-all-v, and any other overlap of buffers
//
// An allreduce produces the same bits on every rank. Bool sums to "any" and multiplies to "all".
// Integers wrap around in their own type. Avg needs a float type. f8 types can only be moved.
//
// On host memory (in-process, MPI) and in-process on one GPU, reductions run in rank order. Results
// have the same bits in every run and on all of these transports. F16 and BF16 are combined in f32
// and rounded once. A NaN wins a minimum or a maximum. NCCL combines in an order that depends on
// sizes and topology, may round at every step, and does not specify NaN in a minimum or maximum:
// its results agree with the others within rounding only.
struct Operation {
  CollectiveKind kind = CollectiveKind::Allreduce;
  const void* send = nullptr;
  void* recv = nullptr;
  int64_t count = 0;  // 0: the operation moves nothing
  DType dtype = DType::F32;
  ReduceOp reduce = ReduceOp::Sum;
  int peer = -1;  // rank within the communicator
  int root = -1;  // rank within the communicator
  // AllToAllV: the caller keeps the lists alive until the operation has completed.
  std::span<const int64_t> send_counts = {};
  std::span<const int64_t> recv_counts = {};
};

using Ticket = int64_t;

// The communicator of one team, as one rank uses it. Every member posts the same collectives in the
// same order. Sends and receives match by order between a pair of ranks. Not thread-safe: one
// thread posts, and the same or another thread tests, but not both at the same time.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // true: post() enqueues on a native device stream (a cudaStream_t), and that stream orders the
  // operations. The buffers are device memory. test() is not used.
  // false: post() starts the operation at once on host memory, and test() returns whether it has
  // completed.
  virtual bool isStreamOrdered() const = 0;

  // Starts the operations together. Their sends and receives are matched as one group, so a ring of
  // sends and receives cannot deadlock. Where the transport can, several collectives of a group run
  // at the same time (with NCCL in one launch); none may access what another writes. `stream` is
  // the native stream if isStreamOrdered(). Otherwise the call returns without waiting for other
  // ranks.
  virtual Ticket post(std::span<const Operation> group, void* stream) = 0;

  // Makes progress and returns whether the group has completed. Throws UserError if another rank
  // has failed or the transport reports an error (with the name of the call and its message).
  virtual bool test(Ticket ticket) = 0;

  // For a stream-ordered communicator: returns whether a collective that waits for other ranks
  // occupies SMs. If two communicators do, and their collectives start in different orders on two
  // ranks, they wait for each other for ever. false: only streams wait, so the collectives may run
  // beside any others that are posted in the same order on all ranks.
  virtual bool holdsDevice() const { return true; }

  // For a stream-ordered communicator: throws UserError if posted work will never complete by
  // itself, because another rank is gone or the transport has met an error, and then ends that
  // work. Call it while waiting for a stream. Thread-safe; never blocks.
  virtual void probe() {}
};

// Selects the hardware of a GPU that moves the data of a collective. Transports without a choice
// ignore it. Equal on all ranks of a team.
struct Carrier {
  // Upper limit for the thread blocks (each on its own SM) of a collective, if the transport runs
  // kernels. 0: the transport chooses.
  int32_t ctas = 0;
  // 1 or more: copy engines move the data if each GPU of the team can access the memory of all
  // others. No SM is used, except briefly for a sum. Otherwise kernels move the data, as for 0.
  // Collectives of different copy channels of a team may run at the same time. Only for kinds with
  // mayCopy().
  int32_t copy_channel = 0;
  auto operator<=>(const Carrier&) const = default;
};

// The interface of the job monitor (comm/monitor/job_monitor.h) to the World that owns it.
class WorldMonitor {
 public:
  virtual ~WorldMonitor() = default;
  // Reports that this rank cannot continue, because of `reason`.
  virtual void fail(const std::string& reason) noexcept = 0;
};

// One rank of a job, with a small host-side exchange by which ranks agree. Every member calls these
// functions in the same order. They block. One thread at a time may call them.
class World {
 public:
  World();
  virtual ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string transport() const = 0;  // "in-process", "mpi", "nccl", "single"

  // Returns the bytes of each rank, by rank.
  virtual std::vector<std::string> exchange(const std::string& mine) = 0;
  void barrier() { exchange(""); }

  // Creates the communicator of the team of this rank. `members` are world ranks in team order and
  // include this rank. Collective over `members`; all members create their communicators in the
  // same order. Initialisation ends with a barrier of the members.
  virtual std::unique_ptr<Communicator> communicator(const std::vector<int>& members) = 0;

  // Creates the communicators of all teams of a partition of the job. Collective over the whole
  // job. `members` is the team of this rank; a rank of no team passes an empty list and gets
  // nullptr. Where the transport can split a communicator, this is cheaper than creating each
  // alone.
  virtual std::unique_ptr<Communicator> split(const std::vector<int>& members,
                                              const Carrier& carrier) {
    static_cast<void>(carrier);
    return members.empty() ? nullptr : communicator(members);
  }
  std::unique_ptr<Communicator> split(const std::vector<int>& members) {
    return split(members, {});
  }

  // Reports that this rank cannot continue. Every waiting call of the other ranks, now or later,
  // throws UserError with `reason` and the number of this rank. Thread-safe; never blocks.
  virtual void abort(const std::string& reason) noexcept = 0;

  // Returns why this rank should stop waiting, as far as it knows; empty while the job has not
  // failed. Thread-safe; never blocks.
  virtual std::string fault() const { return {}; }

  // Ends the waiting calls of this rank after the job has failed; the job monitor
  // (comm/monitor/job_monitor.h) notifies the other ranks. Every waiting call of this rank, now or
  // later, throws UserError with `reason`. Never ends the process. Afterwards an MPI World makes no
  // more MPI calls, and buffers of unfinished operations may be freed. Where ranks share their
  // state it is abort().
  virtual void interrupt(const std::string& reason) noexcept { abort(reason); }

  // Returns the monitor that this World owns. The first call creates it with `make`, which may wait
  // for the other ranks. Thread-safe.
  WorldMonitor& monitor(const std::function<std::unique_ptr<WorldMonitor>()>& make);

  // Reports that this rank leaves the job because of an exception. The UserError of the other ranks
  // contains `why`. Call it where a program catches the exception, while the World exists. Without
  // this call the other ranks learn only which rank has left, when the exception has destroyed its
  // World. Does not end a process or wait for a rank.
  virtual void fail(const std::string& why) noexcept;

 protected:
  // Destroys the monitor. The destructor of every derived class must call this first, because the
  // monitor calls interrupt() until then.
  void closeMonitor() noexcept;
  bool hasMonitor() const;
  // Returns the argument of fail(), if it was called.
  std::optional<std::string> failure() const;

 private:
  std::mutex making_mutex_;           // held while the monitor is created
  mutable std::mutex monitor_mutex_;  // guards the next two; no call waits while it holds it
  std::unique_ptr<WorldMonitor> monitor_;
  std::optional<std::string> failure_;
};

// Reduces `count` elements of `dtype` on host memory: dst = srcs[0] op srcs[1] op ..., in this
// order. dst may be one of srcs. Avg divides by srcs.size() at the end.
void reduceOnHost(void* dst, std::span<const void* const> srcs, int64_t count, DType dtype,
                  ReduceOp op);

}  // namespace heddle::comm
