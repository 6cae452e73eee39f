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
//   AllToAllV      as AllToAll, but the sizes of the parts differ: a rank sends send_counts[r]
//                  elements to rank r and receives recv_counts[r] elements from it. The parts lie
//                  in rank order without gaps. Both lists have `size` entries; `count` is ignored.
//                  The count of the sender must equal that of the receiver.
//   Barrier        no data; completes when every rank has posted it
//   Send           send[count]           to `peer`
//   Recv           recv[count]           from `peer`
// A buffer that only the root needs may be null on the other ranks, which ignore it.
//
// In place means that the result of a rank overwrites its own input:
//   allowed      send == recv of an allreduce, and on the root of a reduce or broadcast; the rank's
//                own part of the larger buffer of an allgather, gather, scatter or reduce-scatter
//   not allowed  an all-to-all or all-to-all-v, and any other overlap of buffers
//
// An allreduce produces the same bits on every rank. A sum of bools is true if any of them is true,
// and a product is true if all are true. Integers wrap around in their own type. Avg needs a float
// type. The f8 types can be moved, but not reduced.
//
// On host memory (in-process, MPI) and in-process on one GPU, reductions run in rank order. Results
// have the same bits in every run and on all of these transports. F16 and BF16 are combined in f32
// and rounded once. A minimum or maximum is NaN if any input is NaN. NCCL chooses an order that
// depends on sizes and topology. It may round at every step and does not specify a minimum or
// maximum with NaN. So its results equal those of the other transports only within rounding.
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
// same order. Sends and receives match by order between a pair of ranks. Not thread-safe: post()
// and test() may be called from different threads, but not at the same time.
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
  // sends and receives cannot deadlock. If the transport supports it, the collectives of a group
  // run at the same time (with NCCL in one launch). So no operation of a group may access a buffer
  // that another one writes. `stream` is the native stream of a stream-ordered communicator. On
  // host memory `stream` is not used, and the call returns without waiting for other ranks.
  virtual Ticket post(std::span<const Operation> group, void* stream) = 0;

  // Makes progress and returns whether the group has completed. Throws UserError if another rank
  // has failed or the transport reports an error (with the name of the call and its message).
  virtual bool test(Ticket ticket) = 0;

  // Returns whether a collective occupies SMs while it waits for other ranks. Only stream-ordered
  // communicators use this. Two communicators that return true deadlock if their collectives start
  // in different orders on two ranks. false: only streams wait. The collectives may then run beside
  // all other collectives that every rank posts in the same order.
  virtual bool holdsDevice() const { return true; }

  // Checks whether the posted work of a stream-ordered communicator can still complete. If another
  // rank is gone or the transport has met an error, it ends the posted work and throws UserError.
  // Call it while waiting for a stream. Thread-safe; never blocks.
  virtual void probe() {}
};

// Selects the hardware of a GPU that moves the data of a collective: SMs or copy engines. A
// transport that offers no choice ignores it. All ranks of a team must pass equal values.
struct Carrier {
  // Upper limit for the thread blocks of a collective, if kernels move the data. Each thread block
  // has its own SM. 0: the transport chooses.
  int32_t ctas = 0;
  // 0: kernels move the data. 1 or more: the number of a copy channel, whose data is moved by copy
  // engines. This uses no SM, except briefly for a sum. If a GPU of the team cannot access the
  // memory of another one, kernels move the data instead. Collectives on different copy channels of
  // a team may run at the same time. Copy channels accept only the kinds for which mayCopy()
  // (comm/operation.h) returns true.
  int32_t copy_channel = 0;
  auto operator<=>(const Carrier&) const = default;
};

// The part of the job monitor (comm/monitor/job_monitor.h) that its owner, a World, calls.
class WorldMonitor {
 public:
  virtual ~WorldMonitor() = default;
  // Reports that this rank cannot continue, because of `reason`.
  virtual void fail(const std::string& reason) noexcept = 0;
};

// Is notified of what a rank does outside of its runs: its task, and its waits in collective calls
// of a World. The job monitor implements it. A World makes one call at a time.
class WorldObserver {
 public:
  virtual ~WorldObserver() = default;
  // `of_job`: all ranks of the job make the call. Otherwise only some ranks make it.
  virtual void beginWait(bool of_job) = 0;
  virtual void endWait() = 0;
  // May throw. The call that begins the task then fails.
  virtual void setTask(RankTask task) = 0;
};

// One rank of a job. exchange(), barrier(), communicator() and split() are collective: they block
// until the other ranks call them too, and all ranks call them in the same order. One thread at a
// time may call them.
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

  // Creates the communicator of the team of this rank. `members` are world ranks in team order and
  // include this rank. Collective over `members`; all members create their communicators in the
  // same order. Initialisation ends with a barrier of the members.
  virtual std::unique_ptr<Communicator> communicator(const std::vector<int>& members) = 0;

  // Creates the communicators of all teams of a partition of the job. Collective over the whole
  // job. `members` is the team of this rank; a rank of no team passes an empty list and gets
  // nullptr. If the transport can split a communicator, this is cheaper than one call of
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

  // Names what this rank does while the object lives. At the end, the earlier task is set again.
  // `world` may be nullptr; the object then does nothing. The World must outlive the object.
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

  // Adds an observer, which must be removed before it is destroyed. `patience` is the patience of a
  // job monitor in seconds (JobMonitorOptions); 0: no limit.
  void addObserver(WorldObserver& observer, std::optional<double> patience = std::nullopt);
  void removeObserver(WorldObserver& observer) noexcept;

  // Reports that this rank cannot continue. Every waiting call of the other ranks, now or later,
  // throws UserError with `reason` and the number of this rank. Thread-safe; never blocks.
  virtual void abort(const std::string& reason) noexcept = 0;

  // Returns the failure of the job because of which this rank should stop waiting. Empty: this rank
  // knows of no failure. Thread-safe; never blocks.
  virtual std::string fault() const { return {}; }

  // Ends the waiting calls of this rank after the job has failed; the job monitor
  // (comm/monitor/job_monitor.h) notifies the other ranks. Every waiting call of this rank, now or
  // later, throws UserError with `reason`. Never ends the process. Afterwards an MPI World makes no
  // more MPI calls, and buffers of unfinished operations may be freed. The default, for ranks that
  // share their state, calls abort().
  virtual void interrupt(const std::string& reason) noexcept { abort(reason); }

  // Returns the monitor that this World owns. The first call creates it with `make`, which may wait
  // for the other ranks. Thread-safe.
  WorldMonitor& monitor(const std::function<std::unique_ptr<WorldMonitor>()>& make);

  // Reports that this rank leaves the job because of an exception. The UserError of the other ranks
  // contains `why`. Call it where a program catches the exception, while the World exists. Without
  // this call the other ranks learn only that this rank has left, and only after the exception has
  // destroyed its World. Does not end a process or wait for a rank.
  virtual void fail(const std::string& why) noexcept;

 protected:
  // Destroys the monitor. The destructor of every derived class must call this first, because the
  // monitor calls interrupt() until then.
  void closeMonitor() noexcept;
  bool hasMonitor() const;
  // Returns the argument of fail(), if it was called.
  std::optional<std::string> failure() const;

  // Reports a wait to the observers. exchange(), communicator() and split() of a derived class keep
  // an object of this class while they wait. Only the outermost object of nested calls counts.
  // `of_job` is as in WorldObserver::beginWait().
  class Wait {
   public:
    Wait(World& world, bool of_job);
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    World& world_;
  };
  // Uses the observers of another World of this rank, for a World that calls the other one.
  void shareObservers(World& other) { observers_ = other.observers_; }
  // The patience of the last job monitor that observed this World.
  double patience() const;

 private:
  struct Observers;
  void setTask(RankTask task);

  std::shared_ptr<Observers> observers_;
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
