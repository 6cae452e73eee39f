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

// Something an instruction did on one rank, in nanoseconds of that machine's steady clock.
struct TimelineEvent {
  InstructionIndex instruction = -1;
  std::string text;
  // Where: a stream of the run, or -1 for the host that issues.
  StreamId stream = -1;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t bytes = 0;  // that the instruction reads and writes on this rank
  // Which trip of a loop, counted for each instruction.
  int32_t occurrence = 0;
  // World ranks of a collective in which no rank is done before all have begun; else empty.
  std::vector<int> team;
};

// When one run did what, for heddle run --profile. Given to a run by RunOptions; read after
// Outputs::wait() and while the device is there. Costs time and memory, an event an instruction.
// One run at a time; its streams may add at once.
class RunProfile {
 public:
  RunProfile() = default;
  ~RunProfile();
  RunProfile(const RunProfile&) = delete;
  RunProfile& operator=(const RunProfile&) = delete;

  // By stream, then by begin.
  std::vector<TimelineEvent> events();

  // For the evaluator and the devices.
  void start(std::shared_ptr<const Plan> plan, std::vector<std::string> texts, Device& device);
  static int64_t now();
  void addIssue(int32_t step, int64_t begin, int64_t end);
  void addWork(int32_t step, int64_t begin, int64_t end);
  // Cuda: around what a step enqueues.
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
  Event origin_ = nullptr;  // a timer whose host time is known
  int64_t origin_time_ = 0;
};

}  // namespace heddle::host
