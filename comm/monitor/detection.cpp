#include "comm/monitor/detection.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <map>
#include <tuple>

#include "comm/process/process_info.h"
#include "ir/base/check.h"

namespace heddle::comm {
namespace {

using Rule = Finding::Rule;
using Findings = std::vector<Finding>;

// A rank counts as silent after this fraction of the deadline. During the rest of the deadline,
// the other ranks must stop waiting for it.
constexpr double kSilentPart = 0.6;
// Delays in seconds before a finding is reported, because the blamed rank itself may still report a
// better reason. kLongGrace applies if this can take longer. For example, the blamed rank may be on
// another machine than the watcher, or an exception may be unwinding its stack.
constexpr double kGrace = 0.3;
constexpr double kLongGrace = 1.5;
// While worksLong() is true for some rank, Rule::Stalled waits for this multiple of
// JobView::patience.
constexpr double kLongWorkPatience = 10;

bool isAlive(const RankSnapshot& rank) { return rank.state == RankState::Alive; }
// Returns whether a rank does work that may take much longer than a collective, for example
// compilation.
bool worksLong(const RankSnapshot& rank) {
  return isAlive(rank) && !rank.waits() &&
         (rank.phase == RankPhase::Compiling || rank.task == RankTask::Reading ||
          rank.task == RankTask::CompilingProgram || rank.task == RankTask::CopyingInputs ||
          rank.task == RankTask::TuningKernels);
}
bool waitsInRun(const RankSnapshot& rank) { return rank.phase == RankPhase::Communicating; }

// Finds processes that are gone, stopped or silent (Rule::Gone, Rule::Silent).
void checkHeartbeats(const JobView& job, Findings& found) {
  for (const RankSnapshot& entry : job.ranks) {
    const size_t at = entry.rank;
    if (!isAlive(entry) || job.in_process[at]) continue;
    const RankLocations::Location* location = &job.locations.ranks[at];
    const ProcessState process = job.on_machine[at] ? processState(location->pid) : ProcessState{};
    if (job.on_machine[at] && (process.isGone() || process.started != location->started)) {
      found.push_back({Rule::Gone, entry.rank, entry.rank, 0, 0, [location] {
                         return fmt::format(
                             "its process ({}) is gone: killed, or ended without leaving",
                             location->text());
                       }});
    } else if (entry.heartbeat != kUnwatched) {
      const double seconds = kSilentPart * job.deadline;
      const bool stopped = process.isStopped();
      found.push_back({Rule::Silent, entry.rank, entry.rank, seconds, entry.heartbeat, [=] {
                         return stopped
                                    ? fmt::format("its process ({}) is stopped", location->text())
                                    : fmt::format("no sign of life from {} for {:.1f} s",
                                                  location->text(), seconds);
                       }});
    }
  }
}

std::string describeDifference(const RankSnapshot& blamed, const RankSnapshot& right, int64_t run) {
  const bool now = run == blamed.run && run == right.run;
  const bool equal_before = blamed.hashOfRun(run - 1) == right.hashOfRun(run - 1);
  if (!now || !equal_before) {
    return fmt::format(
        "it executed different runs than rank {}: with other sizes, or of another of its "
        "Executables",
        right.rank);
  }
  return blamed.program == right.program
             ? fmt::format("it runs with other sizes than rank {}, or another of its Executables",
                           right.rank)
             : fmt::format("it runs another program than rank {}", right.rank);
}

// Finds pairs of ranks that executed different runs. A rank that is matching its posts
// (kMatchingPosts) will find the difference itself, and its message names the instruction. If one
// of the two ranks is matching its posts, the rule waits for kGrace.
void checkRuns(const JobView& job, Findings& found) {
  for (const RunDifference& difference : findRunDifferences(job.ranks)) {
    const RankSnapshot& blamed = job.ranks[difference.blamed];
    const RankSnapshot& other = job.ranks[difference.other];
    if (!isAlive(blamed)) continue;
    const bool matching = blamed.issued == kMatchingPosts || other.issued == kMatchingPosts;
    found.push_back({Rule::DifferentRuns, blamed.rank, blamed.rank, matching ? kGrace : 0, 0,
                     [why = difference.reason] { return why; }});
  }
}

// Finds the ranks that have left without making a call of the World in which another rank waits.
void checkMissedCalls(const JobView& job, Findings& found) {
  const RankSnapshot* waiter = nullptr;
  for (const RankSnapshot& entry : job.ranks) {
    if (!isAlive(entry) || entry.wait != RankWait::Job) continue;
    if (waiter == nullptr || entry.calls > waiter->calls) waiter = &entry;
  }
  for (const RankSnapshot& entry : job.ranks) {
    if (waiter == nullptr || entry.state != RankState::Left || entry.calls >= waiter->calls) {
      continue;
    }
    found.push_back({Rule::MissedCall, entry.rank, entry.rank, kLongGrace, waiter->calls,
                     [waiter] { return fmt::format("rank {} waits for it", waiter->rank); }});
  }
}

// Finds ranks that will never begin a run that another rank has begun. Such a rank has left or
// begins no more runs (Rule::Absent), or it still matches the posts of an earlier run
// (Rule::Unmatched).
void checkAbsence(const JobView& job, Findings& found) {
  const RankSnapshot* latest = nullptr;
  const RankSnapshot* latest_in_run = nullptr;
  for (const RankSnapshot& entry : job.ranks) {
    if (!isAlive(entry)) continue;
    if (latest == nullptr || entry.run > latest->run) latest = &entry;
    if (!entry.isInRun()) continue;
    if (latest_in_run == nullptr || entry.run > latest_in_run->run) latest_in_run = &entry;
  }
  for (const RankSnapshot& entry : job.ranks) {
    const bool left = entry.state == RankState::Left;
    const RankSnapshot* later = left ? latest_in_run : latest;
    if (later == nullptr || later->run <= entry.run) continue;
    const bool unwinds = entry.phase == RankPhase::Unwinding;
    const bool here = job.on_machine[entry.rank];
    if (left || (isAlive(entry) && entry.beginsNoMoreRuns())) {
      const double seconds = left || (here && !unwinds) ? kGrace : kLongGrace;
      found.push_back({Rule::Absent, entry.rank, entry.rank, seconds, 0, [=] {
                         return fmt::format(
                             "{}, and rank {} is in run {}",
                             unwinds ? "an exception has ended its runs" : "it begins no more runs",
                             later->rank, later->run);
                       }});
    }
    // Rank `entry` matches its posts, because the sizes of its run are new for it, and waits for
    // all ranks. Rank `later` has already executed this run without matching its posts. Rank
    // `entry` would wait for ever.
    if (isAlive(entry) && entry.issued == kMatchingPosts) {
      found.push_back({Rule::Unmatched, entry.rank, later->rank, kSilentPart * job.deadline,
                       static_cast<uint64_t>(entry.run), [run = entry.run, rank = entry.rank] {
                         return fmt::format(
                             "it has passed run {0} without comparing its posts with rank {1}; the "
                             "sizes of run {0} are new for rank {1}",
                             run, rank);
                       }});
    }
  }
}

// Returns a text with the ranks that will post nothing more in the run of `waiter`, or an empty
// text if there are no such ranks.
std::string describeAlone(const JobView& job, const RankSnapshot& waiter) {
  std::vector<int> past;
  for (const RankSnapshot& entry : job.ranks) {
    if (entry.rank != waiter.rank && entry.isPast(waiter.run)) past.push_back(entry.rank);
  }
  if (past.empty()) return {};
  return fmt::format("it waits there, and {} {} finished that run without posting it",
                     nameRanks(past), past.size() == 1 ? "has" : "have");
}

// Finds a rank that waits in a run that all other ranks have finished or will never begin. The rule
// waits for the full deadline, because one rank may legitimately finish a collective later than the
// others.
void checkAlone(const JobView& job, Findings& found) {
  const RankSnapshot* waiter = nullptr;
  for (const RankSnapshot& entry : job.ranks) {
    if (entry.isLost() || entry.state == RankState::Writing) return;
    if (!isAlive(entry) || !waitsInRun(entry) || entry.communicating < 0) continue;
    if (waiter == nullptr || entry.run < waiter->run) waiter = &entry;
  }
  if (waiter == nullptr || job.ranks.size() == 1) return;
  for (const RankSnapshot& entry : job.ranks) {
    if (entry.rank != waiter->rank && !entry.isPast(waiter->run)) return;
  }
  found.push_back({Rule::Alone, waiter->rank, waiter->rank, job.deadline, waiter->progress,
                   [&job, waiter] { return describeAlone(job, *waiter); }});
}

// Returns the rank that most likely delays the job. The candidates are the ranks for which another
// rank may wait, in a run or in a call of the World. Of these, prefers a rank that does not wait
// itself, then the rank with the earliest run, call and instruction.
const RankSnapshot* mostDelayed(const JobView& job) {
  int64_t earliest = INT64_MAX;
  uint64_t calls = 0;
  bool some_wait = false;  // a rank waits in a call of the World that only some ranks make
  for (const RankSnapshot& entry : job.ranks) {
    if (!isAlive(entry)) continue;
    if (waitsInRun(entry)) earliest = std::min(earliest, entry.run);
    if (entry.wait == RankWait::Job) calls = std::max(calls, entry.calls);
    some_wait = some_wait || entry.wait == RankWait::Some;
  }
  const auto isAwaited = [&](const RankSnapshot& entry) {
    const bool in_run = earliest != INT64_MAX && !entry.isPast(earliest);
    return in_run || entry.calls < calls || entry.wait != RankWait::None || some_wait;
  };
  const auto key = [](const RankSnapshot& entry) {
    return std::tuple(entry.waits(), entry.run, entry.calls, entry.communicating);
  };
  const RankSnapshot* found = nullptr;
  for (const RankSnapshot& entry : job.ranks) {
    if (!isAlive(entry) || !isAwaited(entry)) continue;
    if (found == nullptr || key(entry) < key(*found)) found = &entry;
  }
  return found;
}

// Returns a text that says which rank waits for `blamed`, and where. If `blamed` itself waits for
// ranks that have finished its run, the text says this instead.
std::string describeWaiter(const JobView& job, const RankSnapshot& blamed) {
  if (waitsInRun(blamed)) {
    const std::string alone = describeAlone(job, blamed);
    if (!alone.empty()) return alone;
  }
  for (const RankSnapshot& entry : job.ranks) {
    const bool waits_for_all = entry.wait == RankWait::Job && entry.calls > blamed.calls;
    if (!isAlive(entry) || !(waits_for_all || entry.wait == RankWait::Some)) continue;
    if (entry.rank == blamed.rank) continue;
    if (entry.task == RankTask::None) {
      return fmt::format("rank {} waits for it in a call of its World", entry.rank);
    }
    return fmt::format("rank {} waits for it: rank {} {}", entry.rank, entry.rank,
                       describe(entry.task));
  }
  return "others wait";
}

// Finds a job in which no rank makes progress (Rule::Stalled).
void checkStalled(const JobView& job, Findings& found) {
  size_t evidence = 0;
  bool long_work = false;
  for (const RankSnapshot& entry : job.ranks) {
    long_work = long_work || worksLong(entry);
    for (uint64_t fact :
         {entry.progress, static_cast<uint64_t>(entry.run), static_cast<uint64_t>(entry.issued),
          static_cast<uint64_t>(entry.phase), static_cast<uint64_t>(entry.state), entry.calls,
          static_cast<uint64_t>(entry.wait), static_cast<uint64_t>(entry.task)}) {
      boost::hash_combine(evidence, fact);
    }
  }
  const bool any_waits = std::any_of(job.ranks.begin(), job.ranks.end(), [](const auto& entry) {
    return isAlive(entry) && entry.waits();
  });
  const RankSnapshot* blamed = any_waits && job.patience > 0 ? mostDelayed(job) : nullptr;
  if (blamed == nullptr) return;
  const double seconds = long_work ? kLongWorkPatience * job.patience : job.patience;
  found.push_back({Rule::Stalled, -1, blamed->rank, seconds, evidence, [&job, blamed, seconds] {
                     return fmt::format("nothing has moved on any rank for {} s, and {}", seconds,
                                        describeWaiter(job, *blamed));
                   }});
}

}  // namespace

std::vector<RunDifference> findRunDifferences(const std::vector<RankSnapshot>& ranks) {
  // By run: the lowest rank that still keeps the hash of the run.
  std::map<int64_t, const RankSnapshot*> lowest;
  std::vector<RunDifference> found;
  for (const RankSnapshot& entry : ranks) {
    bool differs = false;
    for (int64_t run = entry.run - static_cast<int64_t>(kKeptRuns) + 1; run <= entry.run; ++run) {
      const uint64_t hash = entry.hashOfRun(run);
      if (hash == 0) continue;
      const RankSnapshot& other = *lowest.try_emplace(run, &entry).first->second;
      if (differs || other.hashOfRun(run) == hash) continue;
      differs = true;
      found.push_back({entry.rank, other.rank, describeDifference(entry, other, run)});
    }
  }
  return found;
}

std::vector<Finding> findFailures(const JobView& job) {
  Findings found;
  for (const auto rule :
       {checkHeartbeats, checkRuns, checkAbsence, checkMissedCalls, checkAlone, checkStalled}) {
    rule(job, found);
  }
  return found;
}

}  // namespace heddle::comm
