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

#include "comm/rank_task.h"
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

// One operation on buffers. The caller owns the buffers and must keep them alive until the
// operation has completed. `count` is in elements. For a collective, all ranks of the communicator
// must pass the same `count`, `root`, `dtype` and `reduce`. Members that the kind does not use can
// keep their defaults. A send and the receive that matches it must have the same `count` and
// `dtype`. In this table, `size` is the number of ranks of the communicator:
//   Allreduce      send[count]           -> recv[count]
//   Reduce         send[count]           -> recv[count] of the root
//   Broadcast      send[count] of the root -> recv[count]
//   Allgather      send[count]           -> recv[size * count], the part of rank r at r * count
//   Gather         send[count]           -> recv[size * count] of the root
//   Scatter        send[size * count] of the root -> recv[count]: rank r gets part r
//   ReduceScatter  send[size * count]    -> recv[count]: rank r gets the reduced part r
//   AllToAll       send[size * count]    -> recv[size * count]: part r is sent to rank r, which
//                                           stores it at (rank of the sender) * count
//   AllToAllV      as AllToAll, but the sizes of the parts differ: a rank sends send_counts[r]
//                  elements to rank r and receives recv_counts[r] elements from it. The parts lie
//                  in rank order without gaps. Both lists have `size` entries; `count` is ignored.
//                  The sender's count must equal the receiver's count.
//   Barrier        no data; completes when every rank has posted it
//   Send           send[count]           to `peer`
//   Recv           recv[count]           from `peer`
// A rank may pass a null pointer for a buffer that it does not need.
//
// An operation is in place if the result of a rank overwrites the input of the same rank. These
// cases are allowed:
//   allreduce                send == recv
//   reduce, broadcast        send == recv on the root
//   allgather, gather,       the smaller buffer is this rank's own part of the larger buffer
//   scatter, reduce-scatter
// In all other cases, and always for an all-to-all or all-to-all-v, buffers must not overlap.
//
// An allreduce produces the same bits on every rank. In every reduction, the sum of bools is their
// logical or, and the product is their logical and. Integers wrap around in their own type. Avg
// needs a float type. Elements of f8 types can be moved, but not reduced.
//
// Three transports reduce in rank order: in-process on host memory, MPI, and in-process on one GPU.
// Copy channels (Carrier::copy_channel) do so too. All four produce the same bits for a reduction,
// in every run. They combine f16 and bf16 in f32, and round the result once. If any input is NaN, a
// minimum or maximum is NaN.
//
// NCCL's kernels reduce in an order that depends on sizes and topology, and may round at every
// step. Their results may therefore differ by rounding errors from the results in rank order. If an
// input is NaN, NCCL does not specify the minimum or maximum.
struct Operation {
  CollectiveKind kind = CollectiveKind::Allreduce;
  const void* send = nullptr;
  void* recv = nullptr;
  int64_t count = 0;  // in elements; AllToAllV ignores it
  DType dtype = DType::F32;
  ReduceOp reduce = ReduceOp::Sum;
  int peer = -1;  // Send, Recv: the other rank, numbered within the communicator
  int root = -1;  // Reduce, Broadcast, Gather, Scatter: rank of the root within the communicator
  // AllToAllV: number of elements per rank. The caller must keep the lists alive until the
  // operation has completed.
  std::span<const int64_t> send_counts = {};
  std::span<const int64_t> recv_counts = {};
};

// Identifies the group of operations that one call of Communicator::post() started.
using Ticket = int64_t;

// The object by which one rank of a team communicates with the other ranks of the team. A team is
// an ordered list of ranks. Every rank of the team must post the same collectives in the same
// order. The n-th send from rank a to rank b matches the n-th receive of rank b from rank a.
// post() and test() may be called from different threads, but not at the same time.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Returns how post() executes operations.
  // - true: post() enqueues on a native device stream (a cudaStream_t). The stream orders the
  //   operations, so callers need not call test(). The buffers are device memory.
  // - false: post() starts the operation at once. The buffers are host memory. test() returns
  //   whether the operation has completed.
  virtual bool isStreamOrdered() const = 0;

  // Starts the operations of `group` together. Sends and receives of one group cannot deadlock,
  // even if each rank of a ring sends to the next rank. The collectives of a group may run at the
  // same time (with NCCL in one launch). Therefore no operation of a group may access a buffer that
  // a different operation of the same group writes. A stream-ordered communicator enqueues the
  // operations on `stream`, a native device stream. All other communicators ignore `stream`, and
  // post() returns without waiting for other ranks.
  virtual Ticket post(std::span<const Operation> group, void* stream) = 0;

  // On host memory, advances the operations of the group, and returns whether all of them have
  // completed. Do not call test() on a stream-ordered communicator: it cannot say whether the group
  // has completed. Throws UserError in these cases:
  // - Another rank has failed.
  // - The transport detects that the ranks posted different operations.
  // - The transport reports an error. The message has the name of the failed call and the text of
  //   the error.
  virtual bool test(Ticket ticket) = 0;

  // Returns whether a collective of this communicator may occupy SMs while it waits for other
  // ranks. The result has a meaning only for stream-ordered communicators.
  // - true: a waiting collective can prevent other collectives from starting. Two such collectives
  //   can deadlock if two ranks start them in different orders.
  // - false: a waiting collective only blocks its stream. It may run at the same time as any other
  //   collective, if every rank posts all collectives in the same order.
  virtual bool holdsDevice() const { return true; }

  // Checks whether the posted work of a stream-ordered communicator can still complete. If another
  // rank has failed or the transport reports an error, probe() ends the posted work and throws
  // UserError. Call probe() repeatedly while you wait for a stream. Thread-safe. Blocks only after
  // such a failure, for a few seconds at most. The default implementation does nothing. This
  // suffices if post() returns only after all ranks have posted: the posted work then waits for no
  // rank that could still fail to post.
  virtual void probe() {}
};

// Selects the hardware that moves the data of a collective: SMs or copy engines of the GPUs. A
// transport without this choice ignores the struct. All ranks of the job must pass equal values to
// one call of World::split().
struct Carrier {
  // The largest number of thread blocks of a collective, if kernels move the data. Each thread
  // block occupies one SM. 0: the transport chooses.
  int32_t ctas = 0;
  // 0: kernels move the data. 1 or more: the number of a copy channel. Copy engines move the data
  // of a copy channel. A collective on a copy channel uses no SMs, except briefly for reductions
  // and for copies within a GPU. If the team cannot have a copy channel, kernels move the data
  // instead. For example, some GPU may be unable to access the memory of another GPU of the team.
  // Collectives on different copy channels of a team may run at the same time. Copy channels accept
  // only Allreduce, Allgather and ReduceScatter.
  int32_t copy_channel = 0;
  auto operator<=>(const Carrier&) const = default;
};

// The job monitor, as seen by the World that owns it. The job monitor reads the status of each
// rank, and makes the waiting calls of the other ranks fail when a rank is lost.
class WorldMonitor {
 public:
  virtual ~WorldMonitor() = default;
  // Reports that this rank cannot continue, because of `reason`.
  virtual void fail(const std::string& reason) noexcept = 0;
};

// The functions by which a World tells the job monitor what its rank does: the current task, and
// waits in collective calls of the World. A World never makes two of these calls at the same time.
class WorldObserver {
 public:
  virtual ~WorldObserver() = default;
  // Reports that the rank begins to wait in a collective call of the World. `of_job` is
  // true if all ranks of the job make this collective call, and false if only a team makes it.
  virtual void beginWait(bool of_job) = 0;
  virtual void endWait() = 0;
  // Reports that the rank begins `task`, or returns to it. If this function throws, the constructor
  // of World::Task throws the same exception.
  virtual void setTask(RankTask task) = 0;
};

// One rank of a job. exchange(), barrier(), communicator() and split() are collective: each call
// blocks until the other participating ranks make the same call. The participating ranks must make
// these calls in the same order. Only one thread of a rank at a time may make such a call.
class World {
 public:
  World();
  virtual ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string transport() const = 0;  // "in-process", "mpi", "nccl", "single"

  // Returns the bytes that each rank passed as `mine`, indexed by rank.
  virtual std::vector<std::string> exchange(const std::string& mine) = 0;
  void barrier() { exchange(""); }

  // Creates the communicator of one team. `members` are the members of the team in team order, as
  // ranks of the job. They include this rank. Collective over `members`. All members must create
  // their communicators in the same order.
  virtual std::unique_ptr<Communicator> communicator(const std::vector<int>& members) = 0;

  // Creates the communicators of all teams of a partition of the job. Collective over the whole
  // job. `members` is the team of this rank. A rank that is in no team passes an empty list and
  // gets nullptr. `carrier` says which hardware moves the data of the new communicators. If the
  // transport can split a communicator, one call of split() is cheaper than one call of
  // communicator() per team.
  virtual std::unique_ptr<Communicator> split(const std::vector<int>& members,
                                              const Carrier& carrier) {
    static_cast<void>(carrier);
    const Wait wait(*this, true);
    return members.empty() ? nullptr : communicator(members);
  }
  std::unique_ptr<Communicator> split(const std::vector<int>& members) {
    return split(members, {});
  }

  // The constructor sets the task of this rank, and the destructor restores the previous task. If
  // `world` is nullptr, the object does nothing. The World must outlive the object.
  class Task {
   public:
    Task(World* world, RankTask task);
    ~Task();
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;

   private:
    World* world_;
    RankTask before_ = RankTask::None;
  };

  // Adds an observer, which must be removed before it is destroyed. `patience` is
  // JobMonitorOptions::patience, in seconds; 0: no limit; nullopt: the previous value stays. If
  // heddle initialised MPI, an MPI World limits the duration of MPI_Finalize to this time.
  void addObserver(WorldObserver& observer, std::optional<double> patience = std::nullopt);
  void removeObserver(WorldObserver& observer) noexcept;

  // Reports that this rank cannot continue. Thread-safe; waits at most for copies that are already
  // running.
  // - In-process: on every rank of the job, each call that waits now or later throws UserError with
  //   `reason` and the number of this rank.
  // - MPI: prints `reason` and ends all processes of the job by MPI_Abort.
  // - NCCL: does the same as the World on host memory that the NCCL World uses.
  virtual void abort(const std::string& reason) noexcept = 0;

  // Returns why the job has failed. Empty: this rank knows of no failure. A caller that waits
  // should stop waiting if the text is not empty. Thread-safe; never blocks.
  virtual std::string fault() const { return {}; }

  // Ends the waiting calls of this rank after the job has failed. On this rank, every call that
  // waits now or later throws UserError with `reason`. The job monitor notifies the other ranks.
  // The process continues. After interrupt(), an MPI World makes no more MPI calls, and buffers of
  // unfinished operations may be freed. The default implementation calls abort(), which is correct
  // if the ranks are threads of one process.
  virtual void interrupt(const std::string& reason) noexcept { abort(reason); }

  // Returns the monitor that this World owns. The first call creates the monitor with `make`, which
  // may wait for the other ranks. Thread-safe.
  WorldMonitor& monitor(const std::function<std::unique_ptr<WorldMonitor>()>& make);

  // Reports that this rank leaves the job because of an exception. On the other ranks, waiting
  // calls then throw UserError with `why` in the message. Call fail() in the handler of the
  // exception, while the World still exists. Without this call, the other ranks do not learn the
  // reason. They only learn that this rank has left, when its World is destroyed. fail() ends no
  // process and waits for no rank.
  virtual void fail(const std::string& why) noexcept;

 protected:
  // Destroys the monitor. The destructor of every derived class must call this function while
  // interrupt() still works, because the monitor may call interrupt() until it is destroyed.
  void closeMonitor() noexcept;
  bool hasMonitor() const;
  // Returns the last argument of fail(), or nullopt if fail() was not called.
  std::optional<std::string> failure() const;

  // Reports a wait to the observers while the object exists. Every exchange(), communicator() and
  // split() of a derived class must hold an object of this class, unless it only forwards the call
  // to another World. If these calls are nested, only the outermost object reports. `of_job` is as
  // in WorldObserver::beginWait().
  class Wait {
   public:
    Wait(World& world, bool of_job);
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    World& world_;
  };
  // Makes this World notify the observers of `other`, which is another World of the same rank. A
  // World that forwards calls to `other` needs this function.
  void shareObservers(World& other) { observers_ = other.observers_; }
  // Returns the last `patience` that was passed to addObserver(); before that, 600 s.
  double patience() const;

 private:
  struct Observers;
  void setTask(RankTask task);

  std::shared_ptr<Observers> observers_;
  std::mutex making_mutex_;           // held while monitor() creates the monitor
  mutable std::mutex monitor_mutex_;  // guards the next two members; held only briefly
  std::unique_ptr<WorldMonitor> monitor_;
  std::optional<std::string> failure_;
};

// Reduces `count` elements of `dtype` on host memory: dst = srcs[0] op srcs[1] op ..., in this
// order. dst may be one of srcs. Avg divides by srcs.size() at the end. Throws UserError for an f8
// type, and for an average of integers or bools.
void reduceOnHost(void* dst, std::span<const void* const> srcs, int64_t count, DType dtype,
                  ReduceOp op);

}  // namespace heddle::comm
