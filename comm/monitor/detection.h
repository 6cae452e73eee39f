#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/monitor/job_places.h"
#include "comm/monitor/rank_status.h"

// The rules by which a watcher (comm/monitor/watcher.h) finds failures. Each rule looks at
// snapshots of all ranks. The watcher counts for how long a finding of a rule holds, and reports it
// after the time in the last column. "poll" is one polling interval of the watcher.
//
// failure                                        fact that reveals it              reported after
// ---------------------------------------------  --------------------------------  ---------------
// A rank throws, or an exception destroys its    state Failed, with the reason     one poll
//   World or monitor, or it calls World::fail.
// The first process of another host is killed.   state Gone: its TCP connection    one poll
//                                                closes without a last message
// A process of this host is killed or exits.     heartbeat: no process has its     one poll
//                                                pid and start time any more
// A process is stopped, or its host is silent.   heartbeat does not change         0.6 deadline
// Two ranks made different runs, or the same     run: hashes of a run that both    one poll; 0.3 s
//   run with other sizes, programs or            ranks made differ                 if one matches
//   Executables.                                                                   its posts
// A rank has left, or begins no more runs, and   run: phase and number;            0.3 s; 1.5 s on
//   another rank is in a later run.              state Left                        another host or
//                                                                                  unwinding
// A rank waits to match its posts in a run that  instruction kMatchingPosts, and   0.6 deadline
//   another rank has passed.                     the run numbers
// A rank waits alone for a collective (CPU).     instruction does not change, and  the deadline
//                                                all other ranks finished the run
// A rank has left, and another rank waits in a   calls of the World; state Left    1.5 s
//   call of the World that it has not made.
// Nothing moves in the job.                      run, instruction, task and calls  the patience;
//                                                of all ranks do not change, and   10 times as
//                                                one rank waits                    long if one
//                                                                                  compiles, reads
//                                                                                  files or copies
//                                                                                  inputs
//
// One failure is not visible in these five facts: an all-to-all-v whose counts differ between
// ranks. The hashes of its runs are equal, because the counts come from data. PostedCounts
// (comm/monitor/posted_counts.h) reveals it.
namespace heddle::comm {

struct JobView {
  JobPlaces places;
  double deadline = 0;           // seconds
  double patience = 0;           // seconds; 0: no limit
  std::vector<bool> in_process;  // by rank: the rank is in the process of the watcher
  std::vector<bool> on_host;     // by rank: the operating system knows its process
  std::vector<RankSnapshot> ranks;
};

struct Finding {
  enum class Rule { Gone, Silent, DifferentRuns, Absent, Unmatched, MissedCall, Alone, Stalled };
  Rule rule;
  int subject;                          // the rank whose facts show the failure; -1: all ranks
  int blamed;                           // the rank that becomes Lost (Gone for Rule::Gone)
  double seconds;                       // for how long the finding must hold before it is reported
  uint64_t evidence;                    // if it changes, the time starts again
  std::function<std::string()> reason;  // must not be called after the JobView is destroyed
};
// Applies all rules. For a rank that has left, only Rule::Absent applies.
std::vector<Finding> findFailures(const JobView& job);

// Two ranks that made different runs.
struct RunDifference {
  int blamed;
  int other;  // a lower rank, whose runs count as correct
  std::string reason;
};
// Compares the runs of every rank with those of the lowest rank that still keeps them. Returns the
// differences in order of the blamed rank.
std::vector<RunDifference> findRunDifferences(const std::vector<RankSnapshot>& ranks);

}  // namespace heddle::comm
