#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "host/device/device.h"
#include "host/job/job_link.h"
#include "host/plan/plan.h"
#include "host/run/kept_owners.h"
#include "host/run/numerics/numerics_record.h"
#include "host/run/owner_reaper.h"
#include "host/run/profile/run_observer.h"

namespace heddle::host {

class RunRecord;  // host/run/run_record.h

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
  OwnerReaper reaper;  // releases owners (host/run/kept_owners.h), also for runs on other streams
  // Number of failed runs whose error no call has thrown. Includes runs on other streams, and runs
  // of Executables that no longer exist.
  std::atomic<int64_t> unreported_failures{0};

 private:
  Device& device_;
  Stream stream_ = nullptr;
};

// The parts of an Executable that its Outputs (host/outputs.h) need, such as the records of runs,
// the shared stream, and texts for error messages. Outputs may exist longer than their Executable,
// so both share ownership of this object. Thread-safe.
class RunResources : public std::enable_shared_from_this<RunResources> {
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
  SharedStream& stream() { return *stream_; }
  // Returns a record that no run uses, and creates one if there is none. The RunStatePool calls
  // this function under its lock, because two calls must not overlap.
  RunRecord& takeRecord();
  // Takes a record back for later runs. Any thread may call this function.
  void giveRecord(RunRecord& record) noexcept;
  // Returns whether a record must release its plan before giveRecord(). A free record keeps its
  // plan alive, even if the caches have dropped the plan. Only kMostRecordsWithPlan free records
  // may do so.
  bool hasManyFreeRecords() const {
    return free_records_.load(std::memory_order_relaxed) >= kMostRecordsWithPlan;
  }

  std::atomic<int64_t> held_bytes{0};  // bytes of outputs that are not freed yet

  // true: a run may have an error that no call has thrown yet. Used only if the Executable has a
  // job monitor, as in every job of several ranks. Other runs use any_local_error.
  std::atomic<bool> any_error{false};
  // true: some run of this process without a job monitor has failed. If this or any_job is true,
  // runs check whether their inputs are outputs of failed runs.
  static inline std::atomic<bool> any_local_error{false};
  // true: this process has prepared runs with a job monitor.
  static inline std::atomic<bool> any_job{false};

  std::vector<std::string> output_names;  // by position; set before the first run

  NumericsLog numerics;  // prints the reports about NaN and infinity

  JobLink job;  // the link to the job monitor; open while the Executable exists

 private:
  static constexpr int64_t kMostRecordsWithPlan = 64;

  Device& device_;
  std::vector<std::string> texts_;
  std::shared_ptr<SharedStream> stream_;
  std::atomic<int64_t> free_records_{0};    // number of records in given_ and free_
  std::atomic<RunRecord*> given_{nullptr};  // records that giveRecord() has taken back, as a list
  RunRecord* free_ = nullptr;  // further free records; only takeRecord() uses this list
};

// Blocks the host until `event` of a run of the plan has happened. In some transports, such as
// NCCL, a collective waits on the device for other ranks. If the plan has such collectives
// (Plan::stream_ordered), the function calls Communicator::probe() while it waits. If another rank
// has failed, probe() aborts these collectives and throws UserError. Otherwise they would wait for
// that rank forever.
void awaitEvent(Device& device, Event event, const Plan& plan);

// Represents the end of one run, and stores the error of the run. The Outputs and the RunState of
// the run share this object, which is part of the run's record (host/run/run_record.h). A run that
// reads an output of a failed run fails too. Its error names the input and repeats the first error.
// A run that reads an output of this second run fails with the error of the second run.
// Thread-safe, except reuse().
struct Completion {
  explicit Completion(std::shared_ptr<RunResources> r)
      : resources(std::move(r)),
        event(resources->device().createEvent()),
        errors(resources->job.status() != nullptr ? resources->any_error
                                                  : RunResources::any_local_error),
        device_(resources->device()) {
    if (resources->job.status() != nullptr) RunResources::any_job.store(true);
  }
  ~Completion() { device_.destroyEvent(event); }
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  // Prepares the object for another run.
  void reuse(std::shared_ptr<RunResources> r);
  // Returns whether the run has completed. Does not block. If the device has failed, the run counts
  // as completed, and the failure becomes the error of the run. If the job has failed, the run
  // still completes only when `event` has happened. If the run has collectives that wait on the
  // device (Plan::stream_ordered), the failure of the job then becomes the error of the run.
  bool done();
  // Does the work of done(), but does not ask the device whether `event` has happened. Requires
  // that it has happened.
  void setDone();
  // Blocks the host until the run has completed, releases `owners`, then calls rethrow(). If the
  // OwnerReaper is already releasing `owners`, does not wait for it.
  void wait();
  // Blocks the host until the run has completed. Stores a failure in `errors`, but does not throw
  // it. Does not release `owners`.
  void waitForEnd() noexcept;
  // If the run has an error: sets `reported`, reports the failure to the job, and throws the error.
  // If another rank has failed, JobLink::throwIfOtherRankFailed() may throw the error of that rank
  // instead.
  void rethrow();
  // If the run has an error that no call has thrown: counts it, and prints it to stderr. Does not
  // print an error that the run has only because one of its inputs is an output of a failed run.
  void reportUnwaited() noexcept;
  // Throws an error if an input is an output of a run that is known to have failed. Does not query
  // the device.
  void checkInputs() { checkInputs(false); }
  // Returns Outputs::numerics(). The run must have ended.
  std::string numericsReport() const;

  std::shared_ptr<RunResources> resources;  // nullptr: no run uses the record
  std::shared_ptr<const Plan> plan;         // kept alive, because work in flight reads it
  Event event;
  ErrorSink errors;
  KeptOwners owners;                         // released when the run has ended
  RunObserver observer;                      // records the work of the run
  std::shared_ptr<NumericsRecord> numerics;  // nullptr: the run does not check numerics
  std::atomic<bool> reported{false};         // true: the error was thrown or counted
  int64_t run = 0;                           // the result of JobLink::beginRun()
  Stream stream = nullptr;                   // the stream on which the run began and ends
  std::thread::id thread;                    // the thread that issues the run
  // The next run in a list of runs that have ended (EndedRuns in host/run/run_state.h).
  std::shared_ptr<Completion> next_ended;

 private:
  void waitForDevice();
  void conclude();  // called after `event` has happened
  void checkInputs(bool settle);
  void settleProducers();
  // Calls visit(completion, input) for each input that is an output of an earlier run, until
  // visit() returns true. `completion` belongs to the earlier run.
  template <class Visit>
  void findProducer(const Visit& visit) const;
  [[noreturn]] void throwOfInput(const Completion& producer, int input);

  // true: it is known whether the run has failed. done() and wait() then no longer use the
  // communicators. The destructor of the Executable waits until this is true for all runs: it may
  // destroy the communicators, but a caller may still call Outputs::wait() afterwards.
  std::atomic<bool> settled_{false};
  // true: the run failed because it read an output of a failed run.
  std::atomic<bool> by_input_{false};
  Device& device_;
};

}  // namespace heddle::host
