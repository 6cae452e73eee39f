#pragma once

#include <cstdint>
#include <string>

// What the system says of processes, for the control job monitor.
namespace heddle::comm {

struct ProcessState {
  char state = 0;        // as in /proc/PID/stat: R, S, D, T, Z ...; 0: there is no such process
  uint64_t started = 0;  // in clock ticks since the machine started: with the pid it names a
                         // process for good, as a pid is given out again
  bool isGone() const { return state == 0 || state == 'Z' || state == 'X'; }
  bool isStopped() const { return state == 'T' || state == 't'; }
};
ProcessState processState(int pid);

// Equal for processes that see each other's pids and files: the host's name, its start and its
// namespaces.
std::string hostKey();
std::string hostName();
// Equal for processes whose steady clocks are one: the start of their machine.
std::string hostClock();

}  // namespace heddle::comm
