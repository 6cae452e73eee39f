#pragma once

#include <string>

namespace heddle::comm {

// The name of the thread that a process runs while it waits for its job to start (StartTimeout).
// Other processes recognise a waiting process by this thread.
constexpr const char* kStartThread = "heddle-start";

// Returns one line per rank of the job of this process. The line says whether the process of the
// rank on this host is stopped, waits for the job to start, does something else, or does not exist.
// The text comes from the operating system, without communication with other ranks. It is empty if
// no launcher (such as mpirun) has given this process a rank.
std::string describeJobProcesses();

}  // namespace heddle::comm
