#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "host/device/device.h"
#include "host/program/program.h"

namespace heddle::host {

// A deliberate fault, for tests of how a job ends. The fault acts when rank `rank` issues
// instruction `instruction`.
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
  InstructionIndex instruction = 0;  // index in the program after inlineCalls()
  double seconds = 0;                // duration of a Delay
  bool is_process = false;           // true: the rank is a separate process, which Die may kill
};

// Parses a text such as `rank=2,instr=7,die`. The kinds are die, throw, stall, delay=5s and
// corrupt. Throws UserError that names the wrong field.
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

}  // namespace heddle::host
