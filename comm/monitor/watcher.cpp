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

std::vector<BoardEntry> entriesOf(const BoardMemory& memory) {
  std::vector<BoardEntry> entries;
  for (int rank = 0; rank < memory.size(); ++rank) entries.push_back(read(memory.slot(rank), rank));
  return entries;
}

// Of a rank that waits in a run: who will post nothing more there. Empty when nobody is past it.
std::string withoutPosting(const std::vector<BoardEntry>& entries, const BoardEntry& waits) {
  std::vector<std::string> past;
  for (const BoardEntry& entry : entries) {
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
std::optional<BoardEntry> loneWaiter(const std::vector<BoardEntry>& entries) {
  std::optional<BoardEntry> found;
  for (const BoardEntry& entry : entries) {
    if (entry.isLost() || entry.state == RankState::Absent || entry.state == RankState::Telling) {
      return std::nullopt;
    }
    const bool waits = entry.state == RankState::Well && entry.phase == RankPhase::Communicating;
    if (waits && entry.communicating >= 0 && (!found || entry.run < found->run)) found = entry;
  }
  const auto isPast = [&](const BoardEntry& entry) {
    return entry.rank == found->rank || entry.isPast(found->run);
  };
  const bool alone = found && std::all_of(entries.begin(), entries.end(), isPast);
  return alone ? found : std::nullopt;
}

}  // namespace

std::string differenceOf(const BoardEntry& blamed, const BoardEntry& right) {
  const bool known = blamed.plan != 0 && right.plan != 0;
  if (!known || blamed.run != right.run || blamed.plan == right.plan) {
    return differentRuns(right.rank);
  }
  return blamed.program == right.program
             ? fmt::format("it runs with other sizes than rank {}, or another of its Executables",
                           right.rank)
             : fmt::format("it runs another program than rank {}", right.rank);
}

std::shared_ptr<BoardWatcher> BoardWatcher::of(const std::shared_ptr<BoardMemory>& memory,
                                               const BoardPlaces& places,
                                               const ControlOptions& options, int rank) {
  std::lock_guard lock(memory->watching);
  std::shared_ptr<BoardWatcher> watcher = memory->watcher.lock();
  if (watcher) return watcher;
  watcher = std::make_shared<BoardWatcher>(memory, places, options, rank);
  memory->watcher = watcher;
  return watcher;
}

BoardWatcher::BoardWatcher(std::shared_ptr<BoardMemory> memory, const BoardPlaces& places,
                           const ControlOptions& options, int rank)
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

BoardWatcher::~BoardWatcher() {
  {
    std::lock_guard lock(sleep_mutex_);
    stop_ = true;
  }
  woken_.notify_all();
  thread_.join();
}

void BoardWatcher::add(ControlBoard& board, std::unique_ptr<BoardLink> link) {
  std::lock_guard lock(mutex_);
  if (link) link_ = std::move(link);
  ends_.push_back(End{&board});
}

void BoardWatcher::remove(ControlBoard& board) {
  std::lock_guard lock(mutex_);
  std::erase_if(ends_, [&](const End& end) { return end.board == &board; });
}

void BoardWatcher::hurry() {
  {
    std::lock_guard lock(sleep_mutex_);
    hurry_ = true;
  }
  woken_.notify_all();
}

int64_t BoardWatcher::turnsIn(double seconds) const {
  return static_cast<int64_t>(1e6 * seconds / static_cast<double>(pause_.count())) + 1;
}

void BoardWatcher::serve() {
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

void BoardWatcher::turn() {
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

void BoardWatcher::beat() {
  for (int rank : mine_) memory_->slot(rank).heartbeat.fetch_add(1, std::memory_order_relaxed);
}

void BoardWatcher::lookAtPeer(int rank) {
  BoardSlot& slot = memory_->slot(rank);
  if (slot.state.load(std::memory_order_acquire) != RankState::Well) return;
  if (std::find(mine_.begin(), mine_.end(), rank) != mine_.end()) return;
  const bool here = here_[static_cast<size_t>(rank)];
  const int pid = slot.pid.load(std::memory_order_relaxed);
  const BoardPlaces::Place& place = places_.ranks[static_cast<size_t>(rank)];
  const ProcessState process = here ? processState(pid) : ProcessState{};
  if (here && (process.isGone() || process.started != place.started)) {
    slot.tell(RankState::Gone,
              fmt::format("its process (pid {} on {}) is gone: killed, or ended without leaving",
                          pid, place.host));
    return;
  }
  Peer& peer = peers_[static_cast<size_t>(rank)];
  const uint64_t heartbeat = slot.heartbeat.load(std::memory_order_relaxed);
  const bool quiet = heartbeat == peer.heartbeat && heartbeat != kUnwatched;
  peer.quiet_turns = quiet ? peer.quiet_turns + 1 : 0;
  peer.heartbeat = heartbeat;
  if (peer.quiet_turns < turnsIn(kSilentPart * options_.deadline)) return;
  const double seconds = kSilentPart * options_.deadline;
  slot.tell(RankState::Lost,
            here && process.isStopped()
                ? fmt::format("its process (pid {} on {}) is stopped", pid, place.host)
                : fmt::format("no sign of life from pid {} on {} for {:.1f} s", pid, place.host,
                              seconds));
}

// Whether anything in the job has changed since the last turn, and whether somebody waits for it.
void BoardWatcher::lookForMovement() {
  size_t picture = 0;
  bool waits = false;
  bool compiles = false;
  for (int rank = 0; rank < memory_->size(); ++rank) {
    const BoardEntry entry = read(memory_->slot(rank), rank);
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

void BoardWatcher::lookFor(End& end) {
  if (end.told) return;
  if (tellLost(end) || tellLeft(end)) return;
  tellSignal(end);
}

void BoardWatcher::tell(End& end, int rank, std::string what, int signal) {
  JobFailure failure;
  failure.rank = rank;
  failure.told = rank >= 0 && end.board->entry(rank).state == RankState::Failed;
  failure.signal = signal;
  failure.text = std::move(what) + end.board->positions();
  end.told = true;
  // So that nobody takes this rank for the cause when it ends. A signal is a cause.
  const std::string why = signal != 0 ? fmt::format("told to end by signal {}", signal)
                                      : fmt::format("ended because of rank {}", rank);
  end.board->mine().tell(signal != 0 ? RankState::Failed : RankState::Left, why);
  end.board->keep(std::move(failure));
  end.board->tellOwner();
}

// A rank that has failed itself knows, and its owner ends; but not for ever.
bool BoardWatcher::tellLost(End& end) {
  const int lost = end.board->firstLost();
  if (lost < 0) return false;
  const bool own = end.board->entry(lost).state == RankState::Failed && lost == end.board->rank();
  if (own && ++end.failed_turns < turnsIn(options_.deadline / 2)) return true;
  tell(end, lost, end.board->describeLost(lost));
  return true;
}

bool BoardWatcher::tellLeft(End& end) {
  const BoardEntry mine = end.board->entry(end.board->rank());
  int left = -1;
  for (int rank = 0; rank < memory_->size() && left < 0 && mine.isInRun(); ++rank) {
    const BoardEntry peer = end.board->entry(rank);
    if (peer.state == RankState::Left && peer.run < mine.run) left = rank;
  }
  end.alone_turns = left >= 0 ? end.alone_turns + 1 : 0;
  if (end.alone_turns < turnsIn(kMoment)) return false;
  tell(end, left, end.board->describeLost(left));
  return true;
}

// Of two ranks in one run the lower is right. Ranks that are about to compare what they post find
// out for themselves, and say more, unless one of them compares nothing.
void BoardWatcher::lookForDifferentPlans() {
  std::map<int64_t, BoardEntry> first;
  for (int rank = 0; rank < memory_->size(); ++rank) {
    const BoardEntry entry = read(memory_->slot(rank), rank);
    if (entry.state != RankState::Well || entry.plan == 0) continue;
    const auto [found, fresh] = first.try_emplace(entry.run, entry);
    const BoardEntry& other = found->second;
    if (fresh || other.plan == entry.plan) continue;
    const bool agreeing = other.issued == kAgreeing || entry.issued == kAgreeing;
    if (agreeing && ++differing_turns_ < turnsIn(kMoment)) return;
    memory_->slot(rank).tell(RankState::Lost, differenceOf(entry, other));
    return;
  }
  if (!lookForDifferentHistories()) differing_turns_ = 0;
}

// Runs that were over between two turns. True while there may be a better answer.
bool BoardWatcher::lookForDifferentHistories() {
  const BoardSlot& right = memory_->slot(0);
  for (int rank = 1; rank < memory_->size(); ++rank) {
    BoardSlot& slot = memory_->slot(rank);
    const bool well = slot.state.load(std::memory_order_acquire) == RankState::Well;
    if (!well || !ranDifferently(slot, right)) continue;
    const bool agreeing = slot.issued.load() == kAgreeing || right.issued.load() == kAgreeing;
    if (agreeing && ++differing_turns_ < turnsIn(kMoment)) return true;
    slot.tell(RankState::Lost, differenceOf(read(slot, rank), read(right, 0)));
  }
  return false;
}

// A rank waits to compare what it will post in a run with sizes that are new to it. Another that is
// past that run has not compared, so the sizes were not new there. The moment that a rank needs to
// go on when all have compared is short of the time given here.
void BoardWatcher::lookForOvertaken() {
  int64_t latest = 0;
  int ahead = -1;
  for (int rank = 0; rank < memory_->size(); ++rank) {
    const BoardEntry entry = read(memory_->slot(rank), rank);
    if (entry.state != RankState::Well || entry.run <= latest) continue;
    latest = entry.run;
    ahead = rank;
  }
  for (int rank = 0; rank < memory_->size(); ++rank) {
    const BoardEntry entry = read(memory_->slot(rank), rank);
    Peer& peer = peers_[static_cast<size_t>(rank)];
    const bool overtaken = entry.state == RankState::Well && entry.issued == kAgreeing &&
                           entry.run == peer.agreeing_run && entry.run < latest;
    peer.overtaken_turns = overtaken ? peer.overtaken_turns + 1 : 0;
    peer.agreeing_run = entry.issued == kAgreeing ? entry.run : 0;
    if (peer.overtaken_turns < turnsIn(kSilentPart * options_.deadline)) continue;
    memory_->slot(ahead).tell(
        RankState::Lost,
        fmt::format("it is past run {} without comparing what it posts with rank {}, for which the "
                    "sizes of that run are new",
                    entry.run, rank));
    return;
  }
}

// The rank to blame, of those that are not past the earliest run in which somebody waits: the one
// that waits for nobody; else the one that waits at the earliest place.
void BoardWatcher::lookForStuck() {
  if (options_.patience == 0 || still_turns_ < turnsIn(options_.patience)) return;
  const std::vector<BoardEntry> entries = entriesOf(*memory_);
  int64_t earliest = INT64_MAX;
  for (const BoardEntry& entry : entries) {
    const bool waits = entry.isInRun() && entry.phase == RankPhase::Communicating;
    if (waits && entry.state == RankState::Well) earliest = std::min(earliest, entry.run);
  }
  const auto key = [](const BoardEntry& entry) {
    return std::tuple(entry.phase == RankPhase::Communicating, entry.run, entry.communicating);
  };
  const BoardEntry* blamed = nullptr;
  for (const BoardEntry& entry : entries) {
    if (entry.state != RankState::Well || entry.isPast(earliest)) continue;
    if (blamed == nullptr || key(entry) < key(*blamed)) blamed = &entry;
  }
  if (blamed == nullptr) return;
  const bool waits = blamed->phase == RankPhase::Communicating;
  const std::string why = waits ? withoutPosting(entries, *blamed) : std::string();
  memory_->slot(blamed->rank)
      .tell(RankState::Lost, fmt::format("nothing has moved on any rank for {} s, and {}",
                                         options_.patience, why.empty() ? "others wait" : why));
}

// What a rank waits for was not posted, when all others are past that run. The last of a collective
// may still be on its way, or be summed up, when the others have done their part: not for as long.
void BoardWatcher::lookForUnposted() {
  const std::vector<BoardEntry> entries = entriesOf(*memory_);
  const std::optional<BoardEntry> waits = loneWaiter(entries);
  const int rank = waits ? waits->rank : -1;
  const uint64_t progress = waits ? waits->progress : 0;
  const bool still = waits && rank == waiting_ && progress == waiting_progress_;
  waiting_turns_ = still ? waiting_turns_ + 1 : 0;
  waiting_ = rank;
  waiting_progress_ = progress;
  if (memory_->size() == 1 || waiting_turns_ < turnsIn(options_.deadline)) return;
  memory_->slot(rank).tell(RankState::Lost, withoutPosting(entries, *waits));
}

// A rank that begins no more runs is missing in those that others have begun after its last one.
void BoardWatcher::lookForEnded() {
  const BoardEntry* ended = nullptr;
  const BoardEntry* later = nullptr;
  const std::vector<BoardEntry> entries = entriesOf(*memory_);
  for (const BoardEntry& entry : entries) {
    if (entry.state != RankState::Well) continue;
    const bool ends = entry.phase == RankPhase::Ended;
    if (ends && (ended == nullptr || entry.run < ended->run)) ended = &entry;
    if (later == nullptr || entry.run > later->run) later = &entry;
  }
  const bool missing = ended != nullptr && later->run > ended->run;
  ended_turns_ = missing ? ended_turns_ + 1 : 0;
  if (!missing) return;
  BoardSlot& slot = memory_->slot(ended->rank);
  const bool unwinds = slot.unwinds.load(), here = here_[static_cast<size_t>(ended->rank)];
  if (ended_turns_ < turnsIn(here && !unwinds ? kMoment : kLongMoment)) return;
  const char* why = unwinds ? "an exception has ended its runs" : "it begins no more runs";
  slot.tell(RankState::Lost,
            fmt::format("{}, and rank {} is in run {}", why, later->rank, later->run));
}

bool BoardWatcher::tellSignal(End& end) {
  const int signal = options_.end_signal == nullptr ? 0 : options_.end_signal->load();
  if (signal == 0) return false;
  if (++signal_turns_ < turnsIn(kSignalMoment)) return true;
  tell(end, -1, fmt::format("told to end by signal {}\n", signal), signal);
  return true;
}

}  // namespace heddle::comm
