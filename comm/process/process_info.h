#pragma once

#include <cstdint>
#include <string>

// What the operating system knows about processes and hosts.
namespace heddle::comm {

struct ProcessState {
  char state = 0;        // as in /proc/PID/stat: R, S, D, T, Z ...; 0: no such process
  uint64_t started = 0;  // start time in clock ticks since the boot. Pids are reused, so only the
                         // pid and the start time together identify a process
  bool isGone() const { return state == 0 || state == 'Z' || state == 'X'; }
  bool isStopped() const { return state == 'T' || state == 't'; }
};
ProcessState processState(int pid);

// Returns a key that is equal for processes that can see each other's pids and files. It consists
// of the name of the host, the id of its boot and the namespaces of this process.
std::string hostKey();
std::string hostName();
// Returns a key that is equal for processes that share a steady clock. It is the id of the boot of
// the host.
std::string hostClock();

}  // namespace heddle::comm
