#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "comm/communicator.h"
#include "host/device/device.h"
#include "host/program/program.h"

namespace heddle::host {

// A deliberate fault, for tests of how a job ends after a failure. The fault takes effect when rank
// `rank` issues instruction `instruction`, or when it begins task `task`. Corrupt takes effect in
// every run. All other kinds take effect only once.
struct InjectedFault {
  enum class Kind : uint8_t {
    Die,      // kills the process of the rank; if the rank is a thread, throws UserError instead
    Throw,    // the instruction or task fails with a UserError
    Stall,    // the stream of the instruction, or the thread of the task, stops until the job has
              // failed
    Delay,    // the stream of the instruction, or the thread of the task, stops for `seconds`
    Corrupt,  // inverts every bit of the first MiB that the instruction writes
  };
  Kind kind = Kind::Throw;
  int rank = 0;
  InstructionIndex instruction = 0;  // index when every Call is inlined; -1: `task` is set
  comm::RankTask task = comm::RankTask::None;
  double seconds = 0;
  bool is_process = false;  // true: the rank has a process of its own, which Die kills
};

// Parses a text such as `rank=2,instr=7,die` or `rank=2,task=programs,stall`. The kinds are die,
// throw, stall, delay=5s and, for an instruction, corrupt. If a field is wrong or missing, throws
// UserError that names it.
InjectedFault parseFault(std::string_view spec);

// Performs a fault of the kind Die, Throw, Stall or Delay. Call this before the work of the
// instruction is enqueued on `stream`.
// - Die and Throw do not return: the process is killed, or the function throws UserError.
// - Stall and Delay enqueue a host task that blocks the stream. ended() must return whether the job
//   has failed. When it returns true, the host task ends with an error.
// - Corrupt does nothing here.
void injectBefore(const InjectedFault& fault, Device& device, Stream stream, const Issue& issue,
                  std::function<bool()> ended);
// Performs a fault of the kind Corrupt: inverts every bit of the first MiB at `memory`, or of all
// `bytes` bytes if there are fewer. The instruction must write this memory. Throws UserError if
// `bytes` is 0 or `memory` is nullptr. Does nothing for other kinds of faults. Call this after the
// work of the instruction has been enqueued on `stream`.
void injectAfter(const InjectedFault& fault, Device& device, void* memory, int64_t bytes,
                 Stream stream, const Issue& issue);

// While this object exists, injects the fault when rank `fault.rank` begins `fault.task` for the
// first time. Does nothing on other ranks. A Stall or Delay blocks the thread that begins the task.
// If the job fails while the thread is blocked, the thread gets a UserError. Exception: if the rank
// has a process of its own, a Stall blocks the thread until the process ends.
class TaskFault : public comm::WorldObserver {
 public:
  // `world` must outlive this object. `fault.task` must not be None. `ended` must return whether
  // the job has failed.
  TaskFault(comm::World& world, const InjectedFault& fault, std::function<bool()> ended);
  ~TaskFault() override;
  TaskFault(const TaskFault&) = delete;
  TaskFault& operator=(const TaskFault&) = delete;

  // Throws UserError if this rank is the rank of the fault and has not begun the task. Without this
  // error, a user would not notice that the fault had no effect. Call this when the rank has done
  // its work, before it leaves the job. Does nothing if `fault.task` is Leaving, because the rank
  // begins this task only after the call.
  void requireInjected() const;

 private:
  void beginWait(bool) override {}
  void endWait() override {}
  void setTask(comm::RankTask task) override;

  comm::World& world_;
  InjectedFault fault_;
  std::function<bool()> ended_;
  bool injected_ = false;
};

}  // namespace heddle::host
