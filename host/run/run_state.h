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

// Returns true for cudaStreamPerThread, whose handle is 2. This handle means a different stream in
// each thread, so two runs on it are not necessarily in order.
inline bool differsPerThread(Stream stream) { return reinterpret_cast<uintptr_t>(stream) == 2; }

// The stream of all runs for which the caller passes no stream (RunOptions::stream is nullptr).
// Several Executables may share it.
class SharedStream {
 public:
  explicit SharedStream(Device& device) : device_(device) {}
  ~SharedStream();
  SharedStream(const SharedStream&) = delete;
  SharedStream& operator=(const SharedStream&) = delete;
  // Returns the stream, and creates it at the first call. The caller must hold `issuing`.
  Stream get();
  std::mutex issuing;  // a thread holds this lock while it issues a run on the stream

 private:
  Device& device_;
  Stream stream_ = nullptr;
};

// The parts of an Executable that its Outputs need: events, the shared stream, and texts for error
// messages. Outputs may exist longer than their Executable, so both share ownership of this object.
// Thread-safe.
class RunResources {
 public:
  // `instruction_texts` has the text of each instruction. If `stream` is nullptr, the constructor
  // creates a SharedStream.
  RunResources(Device& device, std::vector<std::string> instruction_texts,
               std::shared_ptr<SharedStream> stream);
  ~RunResources();
  RunResources(const RunResources&) = delete;
  RunResources& operator=(const RunResources&) = delete;

  Device& device() const { return device_; }
  const std::vector<std::string>& texts() const { return texts_; }
  std::string text(InstructionIndex index) const;  // such as "instruction 3 (launch @k0 ...)"
  // takeEvent() returns an event for one run. giveEvent() takes the event back for later runs.
  Event takeEvent();
  void giveEvent(Event event);
  SharedStream& stream() { return *stream_; }

  std::atomic<int64_t> held_bytes{0};  // bytes that runs have allocated and not yet freed

  JobLink job;  // the link to the job monitor; open while the Executable exists

 private:
  Device& device_;
  std::vector<std::string> texts_;
  std::mutex mutex_;
  std::vector<Event> free_events_;
  std::shared_ptr<SharedStream> stream_;
};

// Blocks the host until `event` of a run of the plan has happened. If a rank of the job is gone,
// NCCL collectives on the GPU would wait for it forever. Meanwhile this function therefore calls
// Communicator::probe(), which then aborts these collectives and throws UserError.
void awaitEvent(Device& device, Event event, const Plan& plan);

// Represents the end of one run, and stores the error of the run. The Outputs and the RunState of
// the run share this object. Thread-safe.
struct Completion {
  explicit Completion(std::shared_ptr<RunResources> r)
      : resources(std::move(r)), event(resources->takeEvent()) {}
  ~Completion() { resources->giveEvent(event); }
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  // Returns whether the run has completed. If the device or the job has failed, the run counts as
  // completed, and the failure becomes its error.
  bool done();
  // Blocks the host until the run has completed, then calls rethrow().
  void wait();
  // If the run has an error: sets `reported`, reports the failure to the job, and throws the error.
  void rethrow();

  std::shared_ptr<RunResources> resources;
  std::shared_ptr<const Plan> plan;  // kept alive, because work in flight reads it
  Event event;
  ErrorSink errors;
  RunObserver observer;               // records the work of the run
  std::atomic<bool> reported{false};  // true: a call has thrown the error
  int64_t run = 0;                    // the result of JobLink::beginRun()

 private:
  void waitForDevice();
  void conclude();  // call this once the event has happened

  // true: it is known whether the run has failed. done() and wait() then no longer use the
  // communicators. The destructor of the Executable waits until this is true, because it destroys
  // the communicators, and a caller may still call Outputs::wait() afterwards.
  std::atomic<bool> settled_{false};
};

// The mutable data of a run. Only one run at a time uses a RunState. Between runs, the RunStatePool
// stores it. The vectors keep their memory, so that a repeated run does not allocate.
class RunState {
 public:
  explicit RunState(Device& device) : device_(device) {}
  ~RunState();
  RunState(const RunState&) = delete;
  RunState& operator=(const RunState&) = delete;

  // Prepares a run of the plan on `stream`. This is cheap if the last run used the same plan.
  void prepare(const std::shared_ptr<const Plan>& plan, Stream stream);

  IdVector<PointerIndex, std::byte*> pointers;
  IdVector<BufferId, bool> owned;  // true: this run has allocated and not yet freed the buffer
  IdVector<RegisterId, Scalar> registers;
  IdVector<DeviceEventId, Event> events;
  IdVector<StreamId, Stream> streams;  // kCallerStream: the run's stream; the state owns all others
  std::vector<std::byte> args;         // copy of Plan::args; launches write addresses into it
  std::vector<comm::Operation> operations;
  int64_t held_bytes = 0;          // bytes allocated minus bytes freed by the steps issued so far
  int64_t peak_bytes = 0;          // largest value of held_bytes in this run
  std::vector<int64_t> counts;     // counts of the all-to-all-v calls (Plan::Counts)
  std::vector<std::byte> staging;  // host memory to which ReadBack copies
  std::shared_ptr<Completion> completion;  // the end of the latest run
  RunProfile* profile = nullptr;           // records this run; nullptr: no record
  const InjectedFault* fault = nullptr;    // the fault to inject on this rank; nullptr: none
  bool busy = false;  // true: a thread issues a run; the mutex of the pool guards it

 private:
  Device& device_;
  std::shared_ptr<const Plan> plan_;
};

// Owns the RunStates of an Executable, and finds the errors of its runs. Thread-safe.
class RunStatePool {
 public:
  explicit RunStatePool(Device& device) : device_(device) {}
  // Returns a state that no thread uses. Either its last run has completed, or its last run was on
  // `stream` too, so that the new run starts after it.
  RunState& take(Stream stream);
  void giveBack(RunState& state);
  // Adds a run to the watched runs. If the run fails and no Outputs::wait() throws its error,
  // rethrowErrors() throws the error later.
  void watch(std::shared_ptr<Completion> completion);
  // Throws the error of a watched run that has completed, if no call has thrown this error yet. The
  // function queries the device only for runs with an error in Completion::errors, because a query
  // takes as long as a launch. An error of any other run is found by a later watch().
  void rethrowErrors();
  // Waits until all watched runs have completed, but at most for the time `most`. Returns whether
  // they have completed.
  bool endWithin(std::chrono::milliseconds most);
  // Blocks the host until all watched runs have completed. If no call has thrown the error of a
  // run, prints the error to stderr.
  void synchronize() noexcept;

 private:
  // watch() queries the device only while more than this number of runs is watched.
  static constexpr size_t kUnqueried = 1;

  Device& device_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<RunState>> states_;
  std::deque<std::shared_ptr<Completion>> watched_;
};

}  // namespace heddle::host
