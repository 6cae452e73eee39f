#include "comm/monitor/watcher.h"

#include <algorithm>
#include <cmath>

#include "ir/system/start_thread.h"

namespace heddle::comm {
namespace {

using std::chrono::microseconds;

constexpr microseconds kShortestInterval{5'000};
constexpr microseconds kLongestInterval{50'000};
constexpr double kPollsInDeadline = 40;
// Seconds between a signal and its report, in which the watcher may detect the failure that caused
// the signal. The time is short, because mpirun soon sends a second signal, which kills the
// process.
constexpr double kSignalGrace = 0.1;

microseconds intervalFor(double deadline) {
  const auto wanted = microseconds(static_cast<int64_t>(1e6 * deadline / kPollsInDeadline));
  return std::clamp(wanted, kShortestInterval, kLongestInterval);
}

// Returns the new state of the rank that a finding of this rule blames.
RankState stateAfter(Finding::Rule rule) {
  switch (rule) {
    case Finding::Rule::Gone:
      return RankState::Gone;
    case Finding::Rule::Unmatched:
    case Finding::Rule::Alone:
    case Finding::Rule::Stalled:
      return RankState::Stuck;
    case Finding::Rule::Silent:
    case Finding::Rule::DifferentRuns:
    case Finding::Rule::Absent:
    case Finding::Rule::MissedCall:
      return RankState::Lost;
  }
  return RankState::Lost;
}

std::vector<bool> maskOf(const std::vector<int>& ranks, size_t size) {
  std::vector<bool> mask(size);
  for (int rank : ranks) mask[rank] = true;
  return mask;
}

}  // namespace

std::shared_ptr<Watcher> Watcher::of(const std::shared_ptr<RankStatus[]>& statuses,
                                     const RankLocations& locations,
                                     const JobMonitorOptions& options, int rank) {
  static std::mutex mutex;
  static std::map<const RankStatus*, std::weak_ptr<Watcher>> watchers;
  std::lock_guard lock(mutex);
  std::erase_if(watchers, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Watcher>& kept = watchers[statuses.get()];
  std::shared_ptr<Watcher> watcher = kept.lock();
  if (!watcher) kept = watcher = std::make_shared<Watcher>(statuses, locations, options, rank);
  return watcher;
}

Watcher::Watcher(std::shared_ptr<RankStatus[]> statuses, const RankLocations& locations,
                 const JobMonitorOptions& options, int rank)
    : statuses_(std::move(statuses)),
      interval_(intervalFor(options.deadline)),
      end_signal_(options.end_signal),
      job_{locations,
           options.deadline,
           options.patience,
           maskOf(locations.inProcessOf(rank), locations.ranks.size()),
           maskOf(locations.onMachineOf(rank), locations.ranks.size()),
           {}} {
  thread_ = startThread("the job monitor", [this] { serve(); });
}

Watcher::~Watcher() {
  {
    std::lock_guard lock(sleep_mutex_);
    stop_ = true;
  }
  woken_.notify_all();
  thread_.join();
}

void Watcher::add(JobMonitor& monitor, std::unique_ptr<TcpLink> link) {
  std::lock_guard lock(mutex_);
  if (link) link_ = std::move(link);
  clients_.push_back(Client{&monitor});
}

void Watcher::remove(JobMonitor& monitor) {
  std::lock_guard lock(mutex_);
  std::erase_if(clients_, [&](const Client& client) { return client.monitor == &monitor; });
}

void Watcher::wake() {
  {
    std::lock_guard lock(sleep_mutex_);
    wake_ = true;
  }
  woken_.notify_all();
}

int64_t Watcher::pollsIn(double seconds) const {
  return static_cast<int64_t>(std::ceil(1e6 * seconds / static_cast<double>(interval_.count())));
}

void Watcher::serve() {
  for (;;) {
    {
      std::unique_lock lock(sleep_mutex_);
      woken_.wait_for(lock, interval_, [&] { return stop_ || wake_; });
      if (stop_) break;
      wake_ = false;
    }
    poll();
  }
  std::lock_guard lock(mutex_);
  if (link_) link_->close();
}

void Watcher::poll() {
  std::lock_guard lock(mutex_);
  const size_t size = job_.locations.ranks.size();
  for (size_t rank = 0; rank < size; ++rank) {
    if (job_.in_process[rank]) statuses_[rank].heartbeat.fetch_add(1, std::memory_order_relaxed);
  }
  if (link_) link_->poll();
  job_.ranks = readAll({statuses_.get(), size});
  judge();
  // A report can change the states of other ranks of this process at once. All reports therefore
  // use snapshots that are taken before the first report.
  job_.ranks = readAll({statuses_.get(), size});
  for (Client& client : clients_) report(client);
}

// Counts for how many polls each finding has lasted with the same evidence (Finding::evidence).
// When a finding has lasted for Finding::seconds, changes the state of the blamed rank
// (stateAfter()), which makes the job fail on all ranks. If the blamed rank has left, its state
// stays Left, and the job fails only on the ranks that need it (absentFor()).
void Watcher::judge() {
  decltype(held_) held;
  left_early_.clear();
  for (const Finding& finding : findFailures(job_)) {
    const std::pair key(finding.rule, finding.subject);
    const auto before = held_.find(key);
    const bool same = before != held_.end() && before->second.evidence == finding.evidence;
    const int64_t polls = same ? before->second.polls + 1 : 0;
    held.insert_or_assign(key, Held{finding.evidence, polls});
    if (polls < pollsIn(finding.seconds)) continue;
    const size_t blamed = finding.blamed;
    if (job_.ranks[blamed].state == RankState::Left) {
      left_early_.push_back(finding.blamed);
    } else {
      statuses_[blamed].state.leave(stateAfter(finding.rule), finding.reason());
    }
  }
  held_ = std::move(held);
}

// Returns a rank that has left too early for the rank of `monitor`. The rank that left never began
// the current run of the other rank, or never made the call of the World in which the other rank
// waits. Returns -1 if there is no such rank.
int Watcher::absentFor(const JobMonitor& monitor) const {
  const RankSnapshot& mine = job_.ranks[monitor.rank()];
  for (int rank : left_early_) {
    const RankSnapshot& left = job_.ranks[rank];
    if (mine.isInRun() && left.run < mine.run) return rank;
    if (mine.wait == RankWait::Job && left.calls < mine.calls) return rank;
  }
  return -1;
}

// Reports a failure or a signal to the monitor of `client`, but only once. A rank that has itself
// failed usually throws its own error and leaves the job. Such a rank gets a report only if it is
// still in the job after half of the deadline. A signal is reported after kSignalGrace.
void Watcher::report(Client& client) {
  if (client.reported) return;
  JobMonitor& monitor = *client.monitor;
  const auto lost = std::find_if(job_.ranks.begin(), job_.ranks.end(),
                                 [](const RankSnapshot& entry) { return entry.isLost(); });
  int rank = lost == job_.ranks.end() ? -1 : lost->rank;
  int signal = 0;
  double grace = 0;
  if (rank >= 0) {
    const bool own = rank == monitor.rank();
    if (own && monitor.mine().state.get() == RankState::Failed) grace = job_.deadline / 2;
  } else if (rank = absentFor(monitor); rank < 0) {
    signal = end_signal_ == nullptr ? 0 : end_signal_->load();
    if (signal == 0) return;
    grace = kSignalGrace;
  }
  if (grace > 0 && client.grace_polls++ < pollsIn(grace)) return;
  client.reported = true;
  monitor.reportFailure(job_.ranks, rank, signal);
}

}  // namespace heddle::comm
