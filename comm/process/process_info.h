#pragma once

#include <cstdint>
#include <string>

// Facts about processes and machines, from the operating system.
namespace heddle::comm {

struct ProcessState {
  char state = 0;  // state letter of /proc/PID/stat: R, S, D, T, Z ...; 0: no such process
  // Start time in clock ticks since the boot. Needed to identify a process, because the system
  // reuses pids.
  uint64_t started = 0;
  bool isGone() const { return state == 0 || state == 'Z' || state == 'X'; }
  bool isStopped() const { return state == 'T' || state == 't'; }
};
ProcessState processState(int pid);

// Returns a key that is equal for processes that can see each other's pids and files. The key
// consists of the name of the machine, the id of its boot and the namespaces of this process.
std::string machineKey();
std::string machineName();
// Returns a key that is equal for processes that share a steady clock. The key is the id of the
// boot of the machine, or the name of the machine if the id cannot be read.
std::string machineClock();

}  // namespace heddle::comm
