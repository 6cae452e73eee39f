#pragma once

#include <cstdint>
#include <string>

// Facts about processes and machines, from the operating system.
namespace heddle::comm {

struct ProcessState {
  // State letter in /proc/PID/stat: R, S, D, T, Z ...; 0: there is no such file, so no such
  // process.
  char state = 0;
  // Start time in clock ticks since the boot. Needed to identify a process, because the system
  // reuses pids.
  uint64_t started = 0;
  bool isGone() const { return state == 0 || state == 'Z' || state == 'X'; }
  bool isStopped() const { return state == 'T' || state == 't'; }
};
ProcessState processState(int pid);

// Returns a key of the machine. Processes with equal keys can see each other's pids and files. The
// key consists of the name of the machine, the id of its boot, and the pid and mount namespaces of
// this process.
std::string machineKey();
std::string machineName();
// Returns a key that is equal for processes that share a steady clock. The key is the id of the
// boot of the machine, or the name of the machine if the id cannot be read.
std::string machineClock();

}  // namespace heddle::comm
