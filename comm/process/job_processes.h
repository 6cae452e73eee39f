#pragma once

#include <string>

namespace heddle::comm {

// The name of a thread. A process runs this thread while it waits for its job to start
// (StartTimeout in comm/process/start_timeout.h). Other processes find the thread in /proc, and
// then know that the process with this thread waits.
constexpr const char* kStartThread = "heddle-start";

// Returns one line per rank of the job to which this process belongs. The line says whether the
// process of the rank is stopped, waits for the job to start, runs without waiting for the start,
// or does not exist on this host. The facts come from the operating system, so the call needs no
// other rank. The result is empty if no launcher (such as mpirun) has given this process a rank.
std::string describeJobProcesses();

}  // namespace heddle::comm
