#pragma once

#include <string>

namespace heddle::comm {

// The name of the thread by which a process that waits for its job to start is told from one that
// has not come so far.
constexpr const char* kStartThread = "heddle-start";

// A line for each rank of the job of several processes that this one belongs to, of what the system
// knows of it: whether its process on this host is stopped, waits for the job to start, does
// something else, or is not there. Needs no peer. Empty where no launcher has numbered the ranks.
std::string describeJobProcesses();

}  // namespace heddle::comm
