#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "host/device/device.h"
#include "host/program/program.h"

namespace heddle::host {

struct Plan;

// A time span in which an instruction was issued or executed on one rank. Times are in nanoseconds
// of the steady clock of the rank's machine.
struct TimelineEvent {
  InstructionIndex instruction = -1;
  std::string text;
  StreamId stream;  // executed on this stream of the run; invalid: issued by the host
  int64_t begin = 0;
  int64_t end = 0;
  int64_t bytes = 0;       // bytes that the instruction reads and writes on this rank
  int32_t occurrence = 0;  // how often the instruction occurred before, e.g. in a loop
  // The World ranks that take part, if the instruction is a collective that is also a barrier: no
  // rank completes it before all have begun it. Empty for every other instruction.
  std::vector<int> team;
};

// Records when each instruction of a run was issued and executed, for `heddle run --profile`.
//
// Use:      pass it in RunOptions::profile, and read events() after Outputs::wait().
// Lifetime: the device must exist until events() was called or the profile is destroyed.
// Threads:  one run at a time. The streams of the run may add spans concurrently.
// Cost:     host time and memory; on CUDA also two device events per step.
class RunProfile {
 public:
  RunProfile() = default;
  ~RunProfile();
  RunProfile(const RunProfile&) = delete;
  RunProfile& operator=(const RunProfile&) = delete;

  // Returns the spans, sorted by stream and then by begin. Steps of one instruction on one stream
  // are merged. UserError: the profile was given to no run.
  std::vector<TimelineEvent> events();

  // The functions below are for the evaluator and the devices.

  // Begins the record of a run of the plan, and drops the record of an earlier run.
  void start(std::shared_ptr<const Plan> plan, std::vector<std::string> texts, Device& device);
  static int64_t now();  // nanoseconds of the steady clock
  void addIssue(int32_t step, int64_t begin, int64_t end);
  void addWork(int32_t step, int64_t begin, int64_t end);
  // CUDA only: call them before and after a step enqueues its work.
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
  Event origin_ = nullptr;   // a timer that was recorded at origin_time_
  int64_t origin_time_ = 0;  // on the clock of now()
};

}  // namespace heddle::host
