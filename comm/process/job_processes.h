#pragma once

#include <string>

namespace heddle::comm {

// The name of a thread that exists while its process waits for its job to start or to end
// (StartTimeout in comm/process/start_timeout.h). Other processes find this name in /proc, and
// thereby know that the process waits.
constexpr const char* kStartThread = "heddle-start";

// Returns one line per rank of the job to which this process belongs. The line gives the state of
// the process of the rank: stopped, waiting for the other ranks (kStartThread), running, ended, or
// absent on this machine. The call only asks the operating system, and does not communicate. The
// result is empty if no launcher that heddle knows (such as mpirun) has given this process a rank.
std::string describeJobProcesses();

}  // namespace heddle::comm
