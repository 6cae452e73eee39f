#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "host/device/device.h"
#include "host/program/program.h"

namespace heddle::host {

// A fault made on purpose, to see that a job ends cleanly: when `rank` issues the instruction.
struct InjectedFault {
  enum class Kind : uint8_t {
    Die,      // the process is killed; a rank that is a thread throws
    Throw,    // an error of that instruction
    Stall,    // its stream never gets on
    Delay,    // its stream gets on after `seconds`
    Corrupt,  // every bit of the first MiB that it writes is turned over
  };
  Kind kind = Kind::Throw;
  int rank = 0;
  InstructionIndex instruction = 0;  // of the program without Calls
  double seconds = 0;
  bool is_process = false;  // Die: the rank has a process of its own
};

// `rank=2,instr=7,die`, also throw, stall, delay=5s and corrupt. UserError naming the field.
InjectedFault parseFault(std::string_view spec);

// Before the instruction's work goes to `stream`: Die and Throw do not return, Stall and Delay
// enqueue host work that also ends, with an error, once `ended` says that the job has failed.
void injectBefore(const InjectedFault& fault, Device& device, Stream stream, const Issue& issue,
                  std::function<bool()> ended);
// Behind the instruction's work: Corrupt.
void injectAfter(const InjectedFault& fault, Device& device, void* memory, int64_t bytes,
                 Stream stream, const Issue& issue);

}  // namespace heddle::host
