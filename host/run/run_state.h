#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "host/device/device.h"
#include "host/job/inject_fault.h"
#include "host/job/job_link.h"
#include "host/plan/plan.h"
#include "host/run/run_observer.h"
#include "host/run/run_profile.h"

namespace heddle::host {

// Returns true for cudaStreamPerThread (the handle 2), which is a different stream in each thread.
// Two runs on it are not necessarily in order.
inline bool differsPerThread(Stream stream) { return reinterpret_cast<uintptr_t>(stream) == 2; }

// The stream of runs whose RunOptions::stream is nullptr. Several Executables may share it.
class SharedStream {
 public:
  explicit SharedStream(Device& device) : device_(device) {}
  ~SharedStream();
  SharedStream(const SharedStream&) = delete;
  SharedStream& operator=(const SharedStream&) = delete;
  // Returns the stream, and creates it at the first call. Requires that the caller holds `issuing`.
  Stream get();
  std::mutex issuing;  // held while a run is issued on the stream

 private:
  Device& device_;
  Stream stream_ = nullptr;
};

// The parts of an Executable that its Outputs need and that therefore may outlive it: events, the
// stream of runs without RunOptions::stream, texts for error messages. Thread-safe.
class RunResources {
 public:
  // `stream` nullptr: creates a stream.
  RunResources(Device& device, std::vector<std::string> instruction_texts,
               std::shared_ptr<SharedStream> stream);
  ~RunResources();
  RunResources(const RunResources&) = delete;
  RunResources& operator=(const RunResources&) = delete;

  Device& device() const { return device_; }
  const std::vector<std::string>& texts() const { return texts_; }
  std::string text(InstructionIndex index) const;  // "instruction 3 (launch @k0 ...)"
  // Return an event for one run, and take it back for later runs.
  Event takeEvent();
  void giveEvent(Event event);
  SharedStream& stream() { return *stream_; }

  std::atomic<int64_t> held_bytes{0};  // allocated by runs and not yet freed

  JobLink job;  // open while the Executable exists

 private:
  Device& device_;
  std::vector<std::string> texts_;
  std::mutex mutex_;
  std::vector<Event> free_events_;
  std::shared_ptr<SharedStream> stream_;
};

// Blocks the host until `event` of a run of the plan has happened. If the plan's collectives wait
// on the device, this function also probes their transport while it waits. If a rank is gone, the
// probe aborts the collectives that wait for this rank and throws UserError. No other code does
// this.
void awaitEvent(Device& device, Event event, const Plan& plan);

// The completion of one run, and the error of the run. The Outputs of the run and the RunState that
// it used share this object. Thread-safe.
struct Completion {
  explicit Completion(std::shared_ptr<RunResources> r)
      : resources(std::move(r)), event(resources->takeEvent()) {}
  ~Completion() { resources->giveEvent(event); }
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  // Returns whether the run has completed. A failure of the device or of the job also completes the
  // run, and becomes its error.
  bool done();
  // Blocks the host until the run has completed, then calls rethrow().
  void wait();
  // If the run has an error, marks it as reported, fails the job and throws the error.
  void rethrow();

  std::shared_ptr<RunResources> resources;
  std::shared_ptr<const Plan> plan;  // kept alive, because work in flight reads it
  Event event;
  ErrorSink errors;
  RunObserver observer;               // of the work in flight
  std::atomic<bool> reported{false};  // a caller has got the error
  int64_t run = 0;                    // from JobLink::beginRun()

 private:
  void waitForDevice();
  void conclude();  // call this once the event has happened

  // The outcome of the run is known, so its communicators are no longer needed. The Executable
  // waits for this before it destroys the communicators, because Outputs may outlive them.
  std::atomic<bool> settled_{false};
};

// The mutable data of a run. Only one run at a time uses it. The RunStatePool keeps it between
// runs. Its vectors keep their memory, so that a repeated run allocates none.
class RunState {
 public:
  explicit RunState(Device& device) : device_(device) {}
  ~RunState();
  RunState(const RunState&) = delete;
  RunState& operator=(const RunState&) = delete;

  // Prepares for a run of the plan on `stream`. Cheap if the last run used the same plan.
  void prepare(const std::shared_ptr<const Plan>& plan, Stream stream);

  IdVector<PointerIndex, std::byte*> pointers;
  IdVector<BufferId, bool> owned;  // allocated by this run and not yet freed
  IdVector<RegisterId, Scalar> registers;
  IdVector<DeviceEventId, Event> events;
  IdVector<StreamId, Stream> streams;  // those other than the caller's belong to this state
  std::vector<std::byte> args;         // copy of the plan's argument blocks, patched in place
  std::vector<comm::Operation> operations;
  int64_t held_bytes = 0;  // after the allocations and frees issued so far
  int64_t peak_bytes = 0;
  std::vector<int64_t> counts;             // lists of all-to-all-v calls, see Plan::Counts
  std::vector<std::byte> staging;          // host memory that ReadBack copies to
  std::shared_ptr<Completion> completion;  // of the latest run
  RunProfile* profile = nullptr;           // of this run, or nullptr
  const InjectedFault* fault = nullptr;    // of this rank, or nullptr
  bool busy = false;                       // a thread issues a run with it; guarded by the pool

 private:
  Device& device_;
  std::shared_ptr<const Plan> plan_;
};

// Owns the RunStates of an Executable and watches the end of its runs. Thread-safe.
class RunStatePool {
 public:
  explicit RunStatePool(Device& device) : device_(device) {}
  // Returns a state that no thread uses. Its last run has completed, or was on the same stream and
  // is therefore ordered before the new run.
  RunState& take(Stream stream);
  void giveBack(RunState& state);
  // Adds a run to the watched runs. rethrowErrors() then throws the error of the run, unless
  // Outputs::wait() has already thrown it.
  void watch(std::shared_ptr<Completion> completion);
  // Throws the error of an earlier run that has completed, if no call has thrown it yet. This
  // function does not query the device, because a query takes as long as a launch. watch() queries
  // the device and finds its errors.
  void rethrowErrors();
  // Waits until all runs have completed, but at most for the time `most`. Returns whether all have
  // completed.
  bool endWithin(std::chrono::milliseconds most);
  // Blocks the host until all runs have completed. Prints errors that no call has thrown to stderr.
  void synchronize() noexcept;

 private:
  // watch() queries the device until at most this number of completed runs is still watched.
  static constexpr size_t kUnqueried = 1;

  Device& device_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<RunState>> states_;
  std::deque<std::shared_ptr<Completion>> watched_;
};

}  // namespace heddle::host
