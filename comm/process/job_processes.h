#pragma once

#include <string>

namespace heddle::comm {

// The name of the thread of a process that waits for its job to start. Other processes recognise a
// waiting process by it.
constexpr const char* kStartThread = "heddle-start";

// Returns one line per rank of the job of this process, with what the operating system knows:
// whether the process of the rank on this host is stopped, waits for the job to start, does
// something else, or does not exist. Needs no other rank. Returns an empty string if no launcher
// has numbered the ranks.
std::string describeJobProcesses();

}  // namespace heddle::comm
