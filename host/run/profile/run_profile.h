#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "host/device/device.h"
#include "host/program/program.h"

namespace heddle::host {

struct Plan;  // internal

// A time span in which an instruction was issued or executed on one rank. Times are in nanoseconds
// of the steady clock of the rank's machine.
struct TimelineEvent {
  InstructionIndex instruction = -1;
  std::string text;
  StreamId stream;  // the stream that executed the instruction; invalid: a span on the host
  int64_t begin = 0;
  int64_t end = 0;
  int64_t bytes = 0;       // bytes that the instruction reads and writes on this rank
  int32_t occurrence = 0;  // number of earlier executions in this run; above 0 only in loops
  // The team, as ranks of the World, in the executed span of a collective that no rank completes
  // before every rank of the team has begun it. Empty in all other spans.
  std::vector<int> team;
};

// Records when each instruction of a run was issued and executed, for `heddle run --trace` and
// `heddle bench`.
//
// Use:      pass the profile in RunOptions::profile, and call events() after Outputs::wait().
// Lifetime: the device must exist until events() has returned or the profile is destroyed.
// Threads:  use the profile for one run at a time. The streams of this run may record concurrently.
// Cost:     host time and memory. On CUDA, each step on a stream also needs two device events.
class RunProfile {
 public:
  RunProfile() = default;
  ~RunProfile();
  RunProfile(const RunProfile&) = delete;
  RunProfile& operator=(const RunProfile&) = delete;

  // Returns the recorded spans, sorted by stream and then by begin. An instruction may consist of
  // several steps. For each execution of an instruction, the spans on the host become one event,
  // and so do the spans on one stream. This function, deviceWork() and matmuls() throw UserError if
  // no run has used the profile.
  std::vector<TimelineEvent> events();

  struct Launch {
    KernelHandle kernel = nullptr;
    const codegen::LaunchStage* stage = nullptr;  // valid until another run uses the profile
  };
  // Returns the instructions in the plan of the recorded run that compute, copy or communicate on
  // the device, each with the kernel launches of its first execution. An instruction without a
  // kernel, such as a library call, has an empty list.
  std::map<InstructionIndex, std::vector<Launch>> deviceWork() const;
  // Returns the instructions in the plan of the recorded run that compute a matrix product, each
  // with the work of its first execution.
  std::map<InstructionIndex, MatmulWork> matmuls() const;

  // heddle calls the functions below during a run. `step` is the index of a step of the plan.

  // Discards the record of an earlier run, and begins to record a run of the plan.
  void start(std::shared_ptr<const Plan> plan, std::vector<std::string> texts, Device& device);
  static int64_t now();  // nanoseconds of the steady clock
  void addIssue(int32_t step, int64_t begin, int64_t end);
  void addWork(int32_t step, int64_t begin, int64_t end);
  // CUDA only. Call beginOnDevice() before a step enqueues its work, and endOnDevice() after it.
  void beginOnDevice(int32_t step, Stream stream);
  void endOnDevice(Stream stream);

 private:
  struct Span {
    int32_t step;
    int64_t begin;
    int64_t end;
  };
  struct Timers {
    int32_t step;
    Event begin;
    Event end;
  };
  TimelineEvent eventOf(const Span& span, bool issues) const;
  void readTimers();
  void clearTimers() noexcept;

  std::mutex mutex_;
  std::shared_ptr<const Plan> plan_;
  std::vector<std::string> texts_;
  Device* device_ = nullptr;
  std::vector<Span> issues_;
  std::vector<Span> work_;
  std::vector<Timers> timers_;
  Event origin_ = nullptr;   // a device timer that was recorded at the time origin_time_
  int64_t origin_time_ = 0;  // a time of now()
};

}  // namespace heddle::host
