#pragma once

#include <cstdint>
#include <string>

// What the operating system knows about processes and hosts.
namespace heddle::comm {

struct ProcessState {
  char state = 0;        // as in /proc/PID/stat: R, S, D, T, Z ...; 0: no such process
  uint64_t started = 0;  // in clock ticks since the boot. Together with the pid it identifies a
                         // process, because pids are reused
  bool isGone() const { return state == 0 || state == 'Z' || state == 'X'; }
  bool isStopped() const { return state == 'T' || state == 't'; }
};
ProcessState processState(int pid);

// Returns a key that is equal on processes that see each other's pids and files: the name of the
// host, its boot and its namespaces.
std::string hostKey();
std::string hostName();
// Returns a key that is equal on processes that share a steady clock: the boot of their host.
std::string hostClock();

}  // namespace heddle::comm
