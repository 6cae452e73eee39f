#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "comm/communicator.h"
#include "host/device/device.h"
#include "host/program/program.h"

namespace heddle::host {

// A deliberate fault for tests of how a job ends. It acts when `rank` issues the instruction, or
// when it begins the task.
struct InjectedFault {
  enum class Kind : uint8_t {
    Die,      // kills the process; throws instead if the rank is a thread
    Throw,    // the instruction fails
    Stall,    // the stream of the instruction stops until the job has failed
    Delay,    // the stream of the instruction stops for `seconds`
    Corrupt,  // inverts every bit of the first MiB that the instruction writes
  };
  Kind kind = Kind::Throw;
  int rank = 0;
  InstructionIndex instruction = 0;  // counted in the program without Calls; -1: see `task`
  comm::RankTask task = comm::RankTask::None;
  double seconds = 0;
  bool is_process = false;  // Die: the rank has a process of its own
};

// Parses a text such as `rank=2,instr=7,die` or `rank=2,task=programs,stall`. The kinds are die,
// throw, stall, delay=5s and, for an instruction, corrupt. UserError naming the field that is
// wrong.
InjectedFault parseFault(std::string_view spec);

// Performs a fault that acts before the instruction. Call this before the work of the instruction
// is enqueued on `stream`.
// - Die and Throw do not return.
// - Stall and Delay enqueue host work that blocks the stream. `ended` must return true once the job
//   has failed; the enqueued host work then ends with an error.
// - Corrupt does nothing here.
void injectBefore(const InjectedFault& fault, Device& device, Stream stream, const Issue& issue,
                  std::function<bool()> ended);
// Performs a Corrupt fault. Call this after the work of the instruction was enqueued on `stream`.
// The instruction writes `bytes` bytes at `memory`. The fault inverts the first MiB of these bytes.
// Other kinds do nothing here.
void injectAfter(const InjectedFault& fault, Device& device, void* memory, int64_t bytes,
                 Stream stream, const Issue& issue);

// Injects a fault when the rank of the fault first begins InjectedFault::task while the object
// lives. Does nothing on other ranks. A stall
// blocks the thread that begins the task until `ended` returns true, and then throws.
class TaskFault : public comm::WorldObserver {
 public:
  // `world` must outlive this object. `ended` returns whether the job has failed.
  TaskFault(comm::World& world, const InjectedFault& fault, std::function<bool()> ended);
  ~TaskFault() override;
  TaskFault(const TaskFault&) = delete;
  TaskFault& operator=(const TaskFault&) = delete;

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
