#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "host/device/device.h"
#include "host/job/inject_fault.h"
#include "host/plan/plan.h"
#include "host/run/owned_memory.h"
#include "host/run/profile/run_profile.h"
#include "host/run/run_record.h"

namespace heddle::host {

// The mutable data of a run. Only one run at a time uses a RunState. Between runs, the RunStatePool
// stores it. The vectors keep their memory, so that a repeated run does not allocate.
class RunState {
 public:
  explicit RunState(Device& device) : owned_memory(device), device_(device) {}
  ~RunState();
  RunState(const RunState&) = delete;
  RunState& operator=(const RunState&) = delete;

  // Prepares a run of the plan on `stream`. The call is cheap if the last run of this RunState used
  // the same plan.
  void prepare(const std::shared_ptr<const Plan>& plan, Stream stream);

  IdVector<PointerIndex, std::byte*> pointers;  // addresses of memory; see PointerIndex
  std::vector<int64_t> late_offsets;  // per element of Plan::late_pointers: bytes after its base
  // Returns the counters (codegen::LaunchStage::kCounters) of a stream of the program. They belong
  // to this state, because runs of different states may be on the device at the same time. The
  // first call for a stream allocates them. Throws std::bad_alloc as Allocator::allocate() does.
  std::byte* counters(StreamId stream);
  // Sets the late pointers (Plan::late_pointers) whose base is `base`.
  void setLatePointers(PointerIndex base);
  // The memory of an input.
  struct InputRange {
    const std::byte* begin;
    const std::byte* end;
    const Plan::BufferInput* input;
  };
  OwnedMemory owned_memory;  // finds tensors of the caller in the memory of another device
  std::vector<InputRange> input_ranges;  // working memory of checkInputOverlap()
  // The addresses of the inputs that checkInputOverlap() (host/run/input_overlap.h) accepted last.
  std::vector<std::byte*> apart_inputs;
  // The addresses of the preallocated outputs and of the inputs that checkOverlap()
  // (host/run/bind_run.cpp) accepted last.
  std::vector<std::byte*> apart_outputs;
  // true: this run has allocated the buffer, and has neither freed it nor moved it to an output.
  IdVector<BufferId, bool> owned;
  IdVector<RegisterId, Scalar> registers;  // the scalar values of the run
  IdVector<DeviceEventId, Event> events;   // the device events of the plan's steps
  IdVector<StreamId, Stream> streams;  // kCallerStream: the run's stream; the state owns all others
  std::vector<std::byte> args;  // copy of Plan::args; launches write addresses and scalars into it
  std::vector<comm::Operation> operations;  // copy of Plan::operations, with addresses
  int64_t held_bytes = 0;          // bytes allocated minus bytes freed by the steps issued so far
  int64_t peak_bytes = 0;          // largest value of held_bytes in this run
  std::vector<int64_t> counts;     // counts of the all-to-all-v calls (Plan::Counts)
  std::vector<std::byte> staging;  // host memory to which ReadBack copies
  RunRecord* record = nullptr;     // the record of the latest run
  std::shared_ptr<Completion> completion;  // the Completion of the latest run
  RunProfile* profile = nullptr;           // records this run; nullptr: nothing is recorded
  const InjectedFault* fault = nullptr;    // the fault to inject on this rank; nullptr: none
  bool busy = false;  // true: a thread issues a run; the mutex of the pool guards it

 private:
  void freeCounters() noexcept;

  Device& device_;
  std::shared_ptr<const Plan> plan_;
  IdVector<StreamId, std::byte*> counters_;  // nullptr: not allocated
};

// A list of runs that have ended. The destructor releases the owners that these runs keep
// (host/run/kept_owners.h). The release of an owner may call code of the user, so the object must
// be destroyed while its thread holds no lock.
class EndedRuns {
 public:
  EndedRuns() = default;
  ~EndedRuns() { release(); }
  EndedRuns(const EndedRuns&) = delete;
  EndedRuns& operator=(const EndedRuns&) = delete;
  void add(std::shared_ptr<Completion> run) noexcept {
    run->next_ended = std::move(first_);
    first_ = std::move(run);
  }
  void release() noexcept;
  // Removes the first run. Moves the owners that it keeps to the end of `owners`. Returns false if
  // the list is empty.
  bool removeFirst(std::vector<std::shared_ptr<void>>& owners) noexcept;
  // Returns the first run of the list. Completion::next_ended points to the next one.
  Completion* first() const { return first_.get(); }

 private:
  std::shared_ptr<Completion> first_;
};

// Owns the RunStates of an Executable, and finds the errors of its runs. A run is *pending* from
// giveBack() until the pool finds that it has completed. In a job of several ranks, a failed run
// stays pending until rethrowErrors() or synchronize() finds it. Thread-safe.
class RunStatePool {
 public:
  // `in_job`: the runs belong to a job of several ranks, which fails as a whole. In a job of one
  // rank, an error belongs to its run alone.
  RunStatePool(Device& device, bool in_job) : device_(device), in_job_(in_job) {}
  // In a job of several ranks, throws the error of an earlier run, if rethrowErrors() finds one.
  // Returns a state that no thread uses, with a record for a run of the plan. If the state has an
  // earlier run, this run has completed or was on `stream` too. In both cases the new run starts
  // after it.
  // `ended` receives the failed runs that rethrowErrors() finds.
  RunState& take(const std::shared_ptr<RunResources>& resources,
                 const std::shared_ptr<const Plan>& plan, Stream stream, EndedRuns& ended);
  // Takes a state back, and adds its run to the pending runs. If many runs are pending, moves
  // completed runs to `ended`. In a job of several ranks, if the run fails and no Outputs::wait()
  // throws its error, rethrowErrors() throws the error later.
  void giveBack(RunState& state, EndedRuns& ended);
  // If a pending run has completed with an error that no call has thrown yet, throws the error. The
  // function queries the device only for runs with an error in Completion::errors, because a query
  // takes a third of the time of a launch. It does not find the failure of a run without such an
  // error, for example a failure of the device. A later giveBack() finds it.
  void rethrowErrors(EndedRuns& ended);
  // Moves the completed runs that still keep owners to `ended`. In a job of several ranks, failed
  // runs keep their owners until their error is thrown. Returns whether pending runs still keep
  // owners.
  bool takeEnded(EndedRuns& ended);
  // Waits until all pending runs have completed, but at most for the time `most`. Returns whether
  // they have completed.
  bool endWithin(std::chrono::milliseconds most);
  // Blocks the host until all pending runs have completed. If no call has thrown the error of a
  // run, reports the error (Completion::reportUnwaited()).
  void synchronize() noexcept;

 private:
  // giveBack() queries the device only if at least this number of runs are pending.
  static constexpr size_t kUnqueried = 32;

  RunState& stateFor(Stream stream);
  std::shared_ptr<Completion> takeFailed();
  void takeCompleted(EndedRuns& ended);
  bool isDone(Completion& run);

  Device& device_;
  const bool in_job_;
  std::mutex mutex_;  // guards all members below, and RunResources::takeRecord()
  std::vector<std::unique_ptr<RunState>> states_;
  std::vector<std::shared_ptr<Completion>> pending_;  // oldest first
  size_t query_at_ = kUnqueried;  // number of pending runs at which giveBack() queries the device
  bool is_reaped_ = false;        // true: an OwnerReaper calls takeEnded()
  std::vector<const Completion*> unfinished_;  // working memory of isDone()
};

}  // namespace heddle::host
