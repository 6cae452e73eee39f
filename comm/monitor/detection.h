#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/monitor/rank_locations.h"
#include "comm/monitor/rank_status.h"

// The rules by which a watcher (comm/monitor/watcher.h) finds failures. Each rule examines
// snapshots of the statuses of all ranks, and returns a finding if it sees a failure. The watcher
// reports the failure when consecutive polls have returned the finding for the time in the last
// column. "poll" is one polling interval of the watcher; "deadline" and "patience" are members of
// JobMonitorOptions (comm/monitor/options.h).
//
// Words: a rank *posts* a collective, send or receive when it starts this operation. A *run* is
// one execution of a host program. At the beginning of some runs, the ranks *match their posts*:
// they compare which operations they will post (kMatchingPosts). *This machine* is the machine of
// the watcher. The facts in the table are fields of RankStatus (comm/monitor/rank_status.h).
//
// failure                                        fact that reveals it              reported after
// ---------------------------------------------  --------------------------------  ---------------
// A run throws, or an exception destroys the     state Failed, with the reason     one poll
//   World or monitor, or a rank calls
//   World::fail, or a signal asks a process to
//   end (JobMonitorOptions::end_signal).
// The process of the lowest rank of another      state Gone: its TCP connection    one poll
//   machine is killed.                           closes without a last message
// A process of this machine is killed, or exits  no process has its pid and start  one poll
//   without leaving the job.                     time any more
// A process is stopped, or its machine is        heartbeat does not change         0.6 deadline
//   silent.
// Two ranks executed different runs, or the      run: the hashes of a run differ   one poll, or
//   same run with other sizes, programs or                                         0.3 s
//   Executables. The longer time applies while
//   one of them matches its posts.
// A rank has left, and another rank is in a      state Left; run: number           0.3 s
//   later run.
// A rank begins no more runs, and another rank   run: phase and number             0.3 s, or 1.5 s
//   has begun a later run. The longer time
//   applies if the rank is on another machine
//   than the watcher, or if an exception ended
//   its runs.
// A rank waits to match its posts in a run, and  instruction kMatchingPosts;       0.6 deadline
//   another rank has begun a later run.          run: number
// On the CPU device, a rank waits alone for a    instruction does not change;      the deadline
//   collective.                                  run: all others have finished it
//                                                or will never begin it
// A rank has left without making a call of the   calls of the World; state Left    1.5 s
//   World that all ranks must make, and another
//   rank waits in this call.
// No rank makes progress.                        run, instruction, task and calls  the patience;
//                                                of all ranks do not change, and   10 times as
//                                                some rank waits                   long if a rank
//                                                                                  compiles, reads
//                                                                                  files, copies
//                                                                                  inputs or tunes
//                                                                                  kernels
//
// One failure is not in the table: two ranks pass different counts to an all-to-all-v.
// PostedCounts (comm/monitor/posted_counts.h) reveals it.
namespace heddle::comm {

// The input of the rules.
struct JobView {
  RankLocations locations;
  double deadline = 0;           // JobMonitorOptions::deadline, in seconds
  double patience = 0;           // JobMonitorOptions::patience, in seconds; 0: no limit
  std::vector<bool> in_process;  // by rank: the rank is in the process of the watcher
  std::vector<bool> on_machine;  // by rank: its process is on the machine of the watcher
  std::vector<RankSnapshot> ranks;
};

// One result of a rule.
struct Finding {
  enum class Rule { Gone, Silent, DifferentRuns, Absent, Unmatched, MissedCall, Alone, Stalled };
  Rule rule;
  int subject;        // the rank whose facts show the failure; -1: all ranks
  int blamed;         // the rank whose state becomes Gone, Lost or Stuck, unless it has left
  double seconds;     // the finding is reported after it has held for this time
  uint64_t evidence;  // if this number changes, the time `seconds` starts again
  std::function<std::string()> reason;  // must not be called after the JobView is destroyed
};
// Applies all rules, and returns their findings. Only Rule::Absent and Rule::MissedCall blame
// ranks in state Left.
std::vector<Finding> findFailures(const JobView& job);

// Two ranks that executed different runs.
struct RunDifference {
  int blamed;
  int other;  // a lower rank, whose runs are taken as correct
  std::string reason;
};
// Compares the hash of each run of a rank with the hash of the same run on the lowest rank that
// still keeps it (kKeptRuns in comm/monitor/rank_status.h). Returns at most one difference per
// blamed rank, in ascending order of the blamed rank.
std::vector<RunDifference> findRunDifferences(const std::vector<RankSnapshot>& ranks);

}  // namespace heddle::comm
