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

// cudaStreamPerThread, 2, is another stream in each thread: two runs on it need not be in order.
inline bool standsForMany(Stream stream) { return reinterpret_cast<uintptr_t>(stream) == 2; }

// The stream of runs that name none.
class SharedStream {
 public:
  explicit SharedStream(Device& device) : device_(device) {}
  ~SharedStream();
  SharedStream(const SharedStream&) = delete;
  SharedStream& operator=(const SharedStream&) = delete;
  Stream get();  // made on first use; while `issuing` is held
  std::mutex issuing;

 private:
  Device& device_;
  Stream stream_ = nullptr;
};

// What outlives an Executable because its Outputs do: events, the stream of runs without one, the
// texts of error messages. Thread-safe.
class RunResources {
 public:
  // `stream` nullptr: a new one.
  RunResources(Device& device, std::vector<std::string> instruction_texts,
               std::shared_ptr<SharedStream> stream);
  ~RunResources();
  RunResources(const RunResources&) = delete;
  RunResources& operator=(const RunResources&) = delete;

  Device& device() const { return device_; }
  const std::vector<std::string>& texts() const { return texts_; }
  std::string text(InstructionIndex index) const;  // "instruction 3 (launch @k0 ...)"
  Event takeEvent();
  void giveEvent(Event event);
  SharedStream& stream() { return *stream_; }

  std::atomic<int64_t> held_bytes{0};  // allocated by runs and not yet given back

  JobLink job;  // open while the Executable is there

 private:
  Device& device_;
  std::vector<std::string> texts_;
  std::mutex mutex_;
  std::vector<Event> free_events_;
  std::shared_ptr<SharedStream> stream_;
};

// The host waits for `event` of a run of the plan. Where its collectives wait for peers on the
// device, it looks after their transport meanwhile: nobody else could tell that a peer is gone, and
// end what waits for it (UserError).
void awaitEvent(Device& device, Event event, const Plan& plan);

// The end of one run, shared by its Outputs and by the RunState that it used.
struct Completion {
  explicit Completion(std::shared_ptr<RunResources> r)
      : resources(std::move(r)), event(resources->takeEvent()) {}
  ~Completion() { resources->giveEvent(event); }
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  // Also when the device or the job has failed, which is then the run's error.
  bool done();
  // The host waits, then as rethrow().
  void wait();
  // Throws the run's error if it has one, and marks it as told.
  void rethrow();

  std::shared_ptr<RunResources> resources;
  std::shared_ptr<const Plan> plan;  // kernels in flight read it
  Event event;
  ErrorSink errors;
  RunObserver observer;  // of the work in flight
  std::atomic<bool> reported{false};
  int64_t run = 0;  // from JobLink::beginRun()

 private:
  void waitForDevice();
  void conclude();  // the event has happened

  // Whether the run has gone well is known. The Executable sees to that before its communicators
  // go, which Outputs outlive.
  std::atomic<bool> settled_{false};
};

// What one run at a time needs besides the plan. Reused by later runs; kept in its pool between
// them. All its vectors keep their memory.
class RunState {
 public:
  explicit RunState(Device& device) : device_(device) {}
  ~RunState();
  RunState(const RunState&) = delete;
  RunState& operator=(const RunState&) = delete;

  // Makes room for a run of the plan on `stream`.
  void prepare(const std::shared_ptr<const Plan>& plan, Stream stream);

  std::vector<std::byte*> pointers;  // by PointerIndex
  std::vector<bool> owned;           // by BufferId: allocated by this run and not yet freed
  std::vector<Scalar> registers;
  std::vector<Event> events;
  std::vector<Stream> streams;  // 0 is the caller's
  std::vector<std::byte> args;  // of the plan, patched in place
  std::vector<comm::Operation> operations;
  int64_t held_bytes = 0;  // by program order
  int64_t peak_bytes = 0;
  std::vector<int64_t> counts;             // lists of operations, by Plan::Counts
  std::vector<std::byte> staging;          // values on their way to the host
  std::shared_ptr<Completion> completion;  // of the latest run
  RunProfile* profile = nullptr;           // of this run, or nullptr
  const InjectedFault* fault = nullptr;    // of this rank, or nullptr
  bool busy = false;                       // a thread issues with it now; guarded by the pool

 private:
  Device& device_;
  std::shared_ptr<const Plan> plan_;
};

// RunStates that several threads take and give back.
class RunStatePool {
 public:
  explicit RunStatePool(Device& device) : device_(device) {}
  // One that no thread uses and whose last run is over, or was on the same stream and so is ordered
  // before this one.
  RunState& take(Stream stream);
  void giveBack(RunState& state);
  // From here on the error of the run is told by rethrowErrors() unless its Outputs tell it first.
  void watch(std::shared_ptr<Completion> completion);
  // Throws the error of an earlier run that is over and of which nobody has been told. Does not ask
  // the device, which takes as long as a launch: what it has met is known when watch() has asked.
  void rethrowErrors();
  // Waits for all runs, but no longer than that. Whether they are over.
  bool endWithin(std::chrono::milliseconds most);
  // The host waits for all runs; an error of which nobody was told goes to stderr.
  void synchronize() noexcept;

 private:
  // So many runs at most are over, as far as the device is concerned, and still watched.
  static constexpr size_t kUnasked = 1;

  Device& device_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<RunState>> states_;
  std::deque<std::shared_ptr<Completion>> watched_;
};

}  // namespace heddle::host
