#include "comm/monitor/watcher.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <map>
#include <optional>
#include <tuple>

#include "comm/process/process_info.h"
#include "ir/base/error.h"

namespace heddle::comm {
namespace {

using std::chrono::microseconds;

constexpr microseconds kShortestPause{5'000};
constexpr microseconds kLongestPause{50'000};
constexpr double kTurnsInDeadline = 40;
// Of the deadline: after it a rank counts as silent, and the rest is for the others to end.
constexpr double kSilentPart = 0.6;
// Seconds in which the cause may still show: of a rank that left, and of a signal, which mpirun
// follows by a stronger one.
constexpr double kMoment = 0.3;
constexpr double kSignalMoment = 0.1;
// For the last word of another host (board_link.cpp), or an exception that unwinds a World.
constexpr double kLongMoment = 1.5;

microseconds pauseFor(double deadline) {
  const auto wanted = microseconds(static_cast<int64_t>(1e6 * deadline / kTurnsInDeadline));
  return std::clamp(wanted, kShortestPause, kLongestPause);
}

std::vector<RankSnapshot> entriesOf(const StatusMemory& memory) {
  std::vector<RankSnapshot> entries;
  for (int rank = 0; rank < memory.size(); ++rank)
    entries.push_back(read(memory.status(rank), rank));
  return entries;
}

// Of a rank that waits in a run: who will post nothing more there. Empty when nobody is past it.
std::string withoutPosting(const std::vector<RankSnapshot>& entries, const RankSnapshot& waits) {
  std::vector<std::string> past;
  for (const RankSnapshot& entry : entries) {
    const bool other = entry.rank != waits.rank && entry.state != RankState::Absent;
    if (other && entry.isPast(waits.run)) past.push_back(std::to_string(entry.rank));
  }
  if (past.empty()) return {};
  const bool one = past.size() == 1;
  const std::string last = past.back();
  past.pop_back();
  return fmt::format("it waits there, and {} {}{}{} {} finished that run without posting it",
                     one ? "rank" : "ranks", fmt::join(past, ", "), one ? "" : " and ", last,
                     one ? "has" : "have");
}

// The rank that alone is not past the run in which it waits for others.
std::optional<RankSnapshot> loneWaiter(const std::vector<RankSnapshot>& entries) {
  std::optional<RankSnapshot> found;
  for (const RankSnapshot& entry : entries) {
    if (entry.isLost() || entry.state == RankState::Absent || entry.state == RankState::Telling) {
      return std::nullopt;
    }
    const bool waits = entry.state == RankState::Well && entry.phase == RankPhase::Communicating;
    if (waits && entry.communicating >= 0 && (!found || entry.run < found->run)) found = entry;
  }
  const auto isPast = [&](const RankSnapshot& entry) {
    return entry.rank == found->rank || entry.isPast(found->run);
  };
  const bool alone = found && std::all_of(entries.begin(), entries.end(), isPast);
  return alone ? found : std::nullopt;
}

}  // namespace

std::string differenceOf(const RankSnapshot& blamed, const RankSnapshot& right) {
  const bool known = blamed.plan != 0 && right.plan != 0;
  if (!known || blamed.run != right.run || blamed.plan == right.plan) {
    return differentRuns(right.rank);
  }
  return blamed.program == right.program
             ? fmt::format("it runs with other sizes than rank {}, or another of its Executables",
                           right.rank)
             : fmt::format("it runs another program than rank {}", right.rank);
}

std::shared_ptr<Watcher> Watcher::of(const std::shared_ptr<StatusMemory>& memory,
                                     const JobPlaces& places, const JobMonitorOptions& options,
                                     int rank) {
  std::lock_guard lock(memory->watching);
  std::shared_ptr<Watcher> watcher = memory->watcher.lock();
  if (watcher) return watcher;
  watcher = std::make_shared<Watcher>(memory, places, options, rank);
  memory->watcher = watcher;
  return watcher;
}

Watcher::Watcher(std::shared_ptr<StatusMemory> memory, const JobPlaces& places,
                 const JobMonitorOptions& options, int rank)
    : memory_(std::move(memory)),
      places_(places),
      options_(options),
      mine_(places.inProcessOf(rank)),
      here_(static_cast<size_t>(memory_->size())),
      pause_(pauseFor(options.deadline)),
      peers_(static_cast<size_t>(memory_->size())) {
  for (int other : places.onHostOf(rank)) here_[static_cast<size_t>(other)] = true;
  thread_ = std::thread([this] { serve(); });
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
  ends_.push_back(End{&monitor});
}

void Watcher::remove(JobMonitor& monitor) {
  std::lock_guard lock(mutex_);
  std::erase_if(ends_, [&](const End& end) { return end.monitor == &monitor; });
}

void Watcher::hurry() {
  {
    std::lock_guard lock(sleep_mutex_);
    hurry_ = true;
  }
  woken_.notify_all();
}

int64_t Watcher::turnsIn(double seconds) const {
  return static_cast<int64_t>(1e6 * seconds / static_cast<double>(pause_.count())) + 1;
}

void Watcher::serve() {
  for (;;) {
    {
      std::unique_lock lock(sleep_mutex_);
      // system_clock's wait: the thread sanitizer does not know the one on steady_clock.
      woken_.wait_until(lock, std::chrono::system_clock::now() + pause_,
                        [&] { return stop_ || hurry_; });
      if (stop_) break;
      hurry_ = false;
    }
    turn();
  }
  std::lock_guard lock(mutex_);
  if (link_) link_->close();
}

void Watcher::turn() {
  std::lock_guard lock(mutex_);
  beat();
  if (link_) link_->turn();
  for (int rank = 0; rank < memory_->size(); ++rank) lookAtPeer(rank);
  lookForMovement();
  lookForStuck();
  lookForUnposted();
  lookForEnded();
  lookForDifferentPlans();
  lookForOvertaken();
  for (End& end : ends_) lookFor(end);
}

void Watcher::beat() {
  for (int rank : mine_) memory_->status(rank).heartbeat.fetch_add(1, std::memory_order_relaxed);
}

void Watcher::lookAtPeer(int rank) {
  RankStatus& status = memory_->status(rank);
  if (status.state.load(std::memory_order_acquire) != RankState::Well) return;
  if (std::find(mine_.begin(), mine_.end(), rank) != mine_.end()) return;
  const bool here = here_[static_cast<size_t>(rank)];
  const int pid = status.pid.load(std::memory_order_relaxed);
  const JobPlaces::Place& place = places_.ranks[static_cast<size_t>(rank)];
  const ProcessState process = here ? processState(pid) : ProcessState{};
  if (here && (process.isGone() || process.started != place.started)) {
    status.tell(RankState::Gone,
                fmt::format("its process (pid {} on {}) is gone: killed, or ended without leaving",
                            pid, place.host));
    return;
  }
  Peer& peer = peers_[static_cast<size_t>(rank)];
  const uint64_t heartbeat = status.heartbeat.load(std::memory_order_relaxed);
  const bool quiet = heartbeat == peer.heartbeat && heartbeat != kUnwatched;
  peer.quiet_turns = quiet ? peer.quiet_turns + 1 : 0;
  peer.heartbeat = heartbeat;
  if (peer.quiet_turns < turnsIn(kSilentPart * options_.deadline)) return;
  const double seconds = kSilentPart * options_.deadline;
  status.tell(RankState::Lost,
              here && process.isStopped()
                  ? fmt::format("its process (pid {} on {}) is stopped", pid, place.host)
                  : fmt::format("no sign of life from pid {} on {} for {:.1f} s", pid, place.host,
                                seconds));
}

// Whether anything in the job has changed since the last turn, and whether somebody waits for it.
void Watcher::lookForMovement() {
  size_t picture = 0;
  bool waits = false;
  bool compiles = false;
  for (int rank = 0; rank < memory_->size(); ++rank) {
    const RankSnapshot entry = read(memory_->status(rank), rank);
    for (uint64_t part :
         {entry.progress, static_cast<uint64_t>(entry.run), static_cast<uint64_t>(entry.issued),
          static_cast<uint64_t>(entry.phase), static_cast<uint64_t>(entry.state)}) {
      boost::hash_combine(picture, part);
    }
    waits = waits || (entry.isInRun() && entry.phase == RankPhase::Communicating);
    compiles = compiles || entry.phase == RankPhase::Compiling;
  }
  const bool still = picture == picture_ && waits && !compiles;
  still_turns_ = still ? still_turns_ + 1 : 0;
  picture_ = picture;
}

void Watcher::lookFor(End& end) {
  if (end.told) return;
  if (tellLost(end) || tellLeft(end)) return;
  tellSignal(end);
}

void Watcher::tell(End& end, int rank, std::string what, int signal) {
  JobFailure failure;
  failure.rank = rank;
  failure.told = rank >= 0 && end.monitor->entry(rank).state == RankState::Failed;
  failure.signal = signal;
  failure.text = std::move(what) + end.monitor->positions();
  end.told = true;
  // So that nobody takes this rank for the cause when it ends. A signal is a cause.
  const std::string why = signal != 0 ? fmt::format("told to end by signal {}", signal)
                                      : fmt::format("ended because of rank {}", rank);
  end.monitor->mine().tell(signal != 0 ? RankState::Failed : RankState::Left, why);
  end.monitor->keep(std::move(failure));
  end.monitor->tellOwner();
}

// A rank that has failed itself knows, and its owner ends; but not for ever.
bool Watcher::tellLost(End& end) {
  const int lost = end.monitor->firstLost();
  if (lost < 0) return false;
  const bool own =
      end.monitor->entry(lost).state == RankState::Failed && lost == end.monitor->rank();
  if (own && ++end.failed_turns < turnsIn(options_.deadline / 2)) return true;
  tell(end, lost, end.monitor->describeLost(lost));
  return true;
}

bool Watcher::tellLeft(End& end) {
  const RankSnapshot mine = end.monitor->entry(end.monitor->rank());
  int left = -1;
  for (int rank = 0; rank < memory_->size() && left < 0 && mine.isInRun(); ++rank) {
    const RankSnapshot peer = end.monitor->entry(rank);
    if (peer.state == RankState::Left && peer.run < mine.run) left = rank;
  }
  end.alone_turns = left >= 0 ? end.alone_turns + 1 : 0;
  if (end.alone_turns < turnsIn(kMoment)) return false;
  tell(end, left, end.monitor->describeLost(left));
  return true;
}

// Of two ranks in one run the lower is right. Ranks that are about to compare what they post find
// out for themselves, and say more, unless one of them compares nothing.
void Watcher::lookForDifferentPlans() {
  std::map<int64_t, RankSnapshot> first;
  for (int rank = 0; rank < memory_->size(); ++rank) {
    const RankSnapshot entry = read(memory_->status(rank), rank);
    if (entry.state != RankState::Well || entry.plan == 0) continue;
    const auto [found, fresh] = first.try_emplace(entry.run, entry);
    const RankSnapshot& other = found->second;
    if (fresh || other.plan == entry.plan) continue;
    const bool agreeing = other.issued == kAgreeing || entry.issued == kAgreeing;
    if (agreeing && ++differing_turns_ < turnsIn(kMoment)) return;
    memory_->status(rank).tell(RankState::Lost, differenceOf(entry, other));
    return;
  }
  if (!lookForDifferentHistories()) differing_turns_ = 0;
}

// Runs that were over between two turns. True while there may be a better answer.
bool Watcher::lookForDifferentHistories() {
  const RankStatus& right = memory_->status(0);
  for (int rank = 1; rank < memory_->size(); ++rank) {
    RankStatus& status = memory_->status(rank);
    const bool well = status.state.load(std::memory_order_acquire) == RankState::Well;
    if (!well || !ranDifferently(status, right)) continue;
    const bool agreeing = status.issued.load() == kAgreeing || right.issued.load() == kAgreeing;
    if (agreeing && ++differing_turns_ < turnsIn(kMoment)) return true;
    status.tell(RankState::Lost, differenceOf(read(status, rank), read(right, 0)));
  }
  return false;
}

// A rank waits to compare what it will post in a run with sizes that are new to it. Another that is
// past that run has not compared, so the sizes were not new there. The moment that a rank needs to
// go on when all have compared is short of the time given here.
void Watcher::lookForOvertaken() {
  int64_t latest = 0;
  int ahead = -1;
  for (int rank = 0; rank < memory_->size(); ++rank) {
    const RankSnapshot entry = read(memory_->status(rank), rank);
    if (entry.state != RankState::Well || entry.run <= latest) continue;
    latest = entry.run;
    ahead = rank;
  }
  for (int rank = 0; rank < memory_->size(); ++rank) {
    const RankSnapshot entry = read(memory_->status(rank), rank);
    Peer& peer = peers_[static_cast<size_t>(rank)];
    const bool overtaken = entry.state == RankState::Well && entry.issued == kAgreeing &&
                           entry.run == peer.agreeing_run && entry.run < latest;
    peer.overtaken_turns = overtaken ? peer.overtaken_turns + 1 : 0;
    peer.agreeing_run = entry.issued == kAgreeing ? entry.run : 0;
    if (peer.overtaken_turns < turnsIn(kSilentPart * options_.deadline)) continue;
    memory_->status(ahead).tell(
        RankState::Lost,
        fmt::format("it is past run {} without comparing what it posts with rank {}, for which the "
                    "sizes of that run are new",
                    entry.run, rank));
    return;
  }
}

// The rank to blame, of those that are not past the earliest run in which somebody waits: the one
// that waits for nobody; else the one that waits at the earliest place.
void Watcher::lookForStuck() {
  if (options_.patience == 0 || still_turns_ < turnsIn(options_.patience)) return;
  const std::vector<RankSnapshot> entries = entriesOf(*memory_);
  int64_t earliest = INT64_MAX;
  for (const RankSnapshot& entry : entries) {
    const bool waits = entry.isInRun() && entry.phase == RankPhase::Communicating;
    if (waits && entry.state == RankState::Well) earliest = std::min(earliest, entry.run);
  }
  const auto key = [](const RankSnapshot& entry) {
    return std::tuple(entry.phase == RankPhase::Communicating, entry.run, entry.communicating);
  };
  const RankSnapshot* blamed = nullptr;
  for (const RankSnapshot& entry : entries) {
    if (entry.state != RankState::Well || entry.isPast(earliest)) continue;
    if (blamed == nullptr || key(entry) < key(*blamed)) blamed = &entry;
  }
  if (blamed == nullptr) return;
  const bool waits = blamed->phase == RankPhase::Communicating;
  const std::string why = waits ? withoutPosting(entries, *blamed) : std::string();
  memory_->status(blamed->rank)
      .tell(RankState::Lost, fmt::format("nothing has moved on any rank for {} s, and {}",
                                         options_.patience, why.empty() ? "others wait" : why));
}

// What a rank waits for was not posted, when all others are past that run. The last of a collective
// may still be on its way, or be summed up, when the others have done their part: not for as long.
void Watcher::lookForUnposted() {
  const std::vector<RankSnapshot> entries = entriesOf(*memory_);
  const std::optional<RankSnapshot> waits = loneWaiter(entries);
  const int rank = waits ? waits->rank : -1;
  const uint64_t progress = waits ? waits->progress : 0;
  const bool still = waits && rank == waiting_ && progress == waiting_progress_;
  waiting_turns_ = still ? waiting_turns_ + 1 : 0;
  waiting_ = rank;
  waiting_progress_ = progress;
  if (memory_->size() == 1 || waiting_turns_ < turnsIn(options_.deadline)) return;
  memory_->status(rank).tell(RankState::Lost, withoutPosting(entries, *waits));
}

// A rank that begins no more runs is missing in those that others have begun after its last one.
void Watcher::lookForEnded() {
  const RankSnapshot* ended = nullptr;
  const RankSnapshot* later = nullptr;
  const std::vector<RankSnapshot> entries = entriesOf(*memory_);
  for (const RankSnapshot& entry : entries) {
    if (entry.state != RankState::Well) continue;
    const bool ends = entry.phase == RankPhase::Ended;
    if (ends && (ended == nullptr || entry.run < ended->run)) ended = &entry;
    if (later == nullptr || entry.run > later->run) later = &entry;
  }
  const bool missing = ended != nullptr && later->run > ended->run;
  ended_turns_ = missing ? ended_turns_ + 1 : 0;
  if (!missing) return;
  RankStatus& status = memory_->status(ended->rank);
  const bool unwinds = status.unwinds.load(), here = here_[static_cast<size_t>(ended->rank)];
  if (ended_turns_ < turnsIn(here && !unwinds ? kMoment : kLongMoment)) return;
  const char* why = unwinds ? "an exception has ended its runs" : "it begins no more runs";
  status.tell(RankState::Lost,
              fmt::format("{}, and rank {} is in run {}", why, later->rank, later->run));
}

bool Watcher::tellSignal(End& end) {
  const int signal = options_.end_signal == nullptr ? 0 : options_.end_signal->load();
  if (signal == 0) return false;
  if (++signal_turns_ < turnsIn(kSignalMoment)) return true;
  tell(end, -1, fmt::format("told to end by signal {}\n", signal), signal);
  return true;
}

}  // namespace heddle::comm
