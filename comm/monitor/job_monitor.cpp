#include "comm/monitor/job_monitor.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <thread>

#include "comm/monitor/watcher.h"
#include "comm/process/process_info.h"
#include "comm/process/start_timeout.h"
#include "ir/base/error.h"

namespace heddle::comm {
namespace {

constexpr double kLongest = 1e8;  // seconds: three years
// For which a rank that leaves by an exception waits for the others to hear of it.
constexpr std::chrono::milliseconds kLongestGoodbye{2000};

std::string_view stateText(const RankSnapshot& entry) {
  switch (entry.state) {
    case RankState::Absent:
      return "not heard of";
    case RankState::Well:
    case RankState::Telling:
      return name(entry.phase);
    case RankState::Failed:
      return "failed";
    case RankState::Left:
      return "left";
    case RankState::Gone:
      return "gone";
    case RankState::Lost:
      return "lost";
  }
  return "?";
}

}  // namespace

JobMonitor::JobMonitor(World& world, JobMonitorOptions options)
    : world_(world),
      rank_(world.rank()),
      options_(std::move(options)),
      exceptions_(std::uncaught_exceptions()) {
  HEDDLE_USER_CHECK(options_.deadline > 0 && options_.deadline <= kLongest,
                    "a deadline of {} seconds: more than 0 and at most {} expected",
                    options_.deadline, kLongest);
  HEDDLE_USER_CHECK(options_.patience >= 0 && options_.patience <= kLongest,
                    "a patience of {} seconds: 0 (for ever) to {} expected", options_.patience,
                    kLongest);
  HEDDLE_USER_CHECK(options_.start >= 0 && options_.start <= kLongest,
                    "{} seconds for the start of a job: 0 (for ever) to {} expected",
                    options_.start, kLongest);
  const StartTimeout watch(options_.start, nullptr, "the other ranks to create the job monitor",
                           [this](const std::string& text, int) {
                             world_.interrupt(fmt::format("rank {} ends: {}", rank_, text));
                           });
  places_ = findPlaces(world, options_.host_key);
  memory_ = StatusMemory::share(world, places_);
  const JobPlaces::Place& place = places_.ranks[static_cast<size_t>(rank_)];
  RankSnapshot me;
  me.rank = rank_;
  me.state = RankState::Well;
  me.pid = place.pid;
  me.started = place.started;
  me.host = place.host;
  mirror(mine(), me);
  activity_ = std::make_unique<RankActivity>(mine());
  std::unique_ptr<TcpLink> link = TcpLink::connect(world, places_, *memory_, options_.deadline);
  watcher_ = Watcher::of(memory_, places_, options_, rank_);
  watcher_->add(*this, std::move(link));
}

JobMonitor::~JobMonitor() {
  if (std::uncaught_exceptions() > exceptions_) {
    fail("it left the job by an exception");
  } else {
    compareLastRuns();
  }
  mine().tell(RankState::Left, "");
  haveSpoken();
  if (entry(rank_).state == RankState::Failed) awaitOthers();
  watcher_->remove(*this);
}

void JobMonitor::awaitOthers() const {
  if (!isOneOfProcesses()) return;
  const auto until = std::chrono::steady_clock::now() + kLongestGoodbye;
  const auto goesOn = [&](int rank) {
    return rank != rank_ && memory_->status(rank).state.load() <= RankState::Telling;
  };
  for (int rank = 0; rank < size(); ++rank) {
    while (goesOn(rank) && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

// Of two ranks the one that has run the same as rank 0 is right, else the lower. Empty when both
// have run the same.
std::string JobMonitor::differingFrom(int other, int& blamed) const {
  if (!ranDifferently(mine(), memory_->status(other))) return {};
  const int lower = std::min(rank_, other);
  const bool both = lower != 0 && ranDifferently(memory_->status(lower), memory_->status(0));
  blamed = both ? lower : std::max(rank_, other);
  return differenceOf(entry(blamed), entry(both ? 0 : lower));
}

void JobMonitor::compareRuns() const {
  int blamed = -1;
  const std::string why = differingFrom((rank_ + 1) % size(), blamed);
  if (why.empty()) return;
  memory_->status(blamed).tell(RankState::Lost, why);
  watcher_->hurry();
  userError("rank {} is lost {}: {}\n{}", blamed, placeOf(entry(blamed)), why, positions());
}

// All others, where it is the last time: who leaves has nobody left to tell but its owner.
void JobMonitor::compareLastRuns() {
  std::string why;
  int blamed = -1;
  for (int other = 0; other < size() && why.empty() && !failed(); ++other) {
    why = differingFrom(other, blamed);
  }
  if (why.empty()) return;
  // Where who is to blame has left already, it is for this rank to end the job.
  const bool ends = memory_->status(blamed).tell(RankState::Lost, why) || entry(blamed).isLost();
  if (!ends) mine().tell(RankState::Failed, why);
  JobFailure failure;
  failure.rank = blamed;
  failure.text =
      fmt::format("rank {} is lost {}: {}\n{}", blamed, placeOf(entry(blamed)), why, positions());
  if (!keep(std::move(failure))) return;
  if (!isOneOfProcesses()) say();
  tellOwner();
}

void JobMonitor::addProgram(uint64_t program, const std::vector<std::string>& instructions) {
  std::lock_guard lock(mutex_);
  programs_.try_emplace(program, instructions);
}

std::shared_ptr<void> JobMonitor::shared(const std::function<std::shared_ptr<void>()>& make) {
  std::lock_guard lock(mutex_);
  if (!shared_) shared_ = make();
  return shared_;
}

// Where another rank is lost already, or the owner has been told so, this one only follows.
void JobMonitor::fail(const std::string& reason) noexcept {
  try {
    if (failed()) return;
    const int lost = firstLost();
    if (lost >= 0) {
      mine().tell(RankState::Left, fmt::format("ended because of rank {}", lost));
      return;
    }
    if (!mine().tell(RankState::Failed, reason)) return;
    JobFailure failure;
    failure.rank = rank_;
    failure.told = true;
    failure.text = describeLost(rank_) + positions();
    keep(std::move(failure));
    watcher_->hurry();
  } catch (const std::exception&) {
    // Out of memory for a message: the status has been written, or the heartbeat will end.
  }
}

bool JobMonitor::othersHaveSpoken() const {
  const std::vector<int> here = places_.onHostOf(rank_);
  for (int rank = 0; rank < size(); ++rank) {
    const RankStatus& status = memory_->status(rank);
    const RankState state = status.state.load(std::memory_order_acquire);
    const bool lost = state == RankState::Gone || state == RankState::Lost;
    if (rank == rank_ || lost || status.spoken.load(std::memory_order_acquire)) continue;
    const bool knows = state == RankState::Left || state == RankState::Failed;
    const bool is_here = std::binary_search(here.begin(), here.end(), rank);
    const int pid = status.pid.load(std::memory_order_relaxed);
    if (is_here ? !processState(pid).isGone() : !knows) return false;
  }
  return true;
}

JobFailure JobMonitor::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

int JobMonitor::firstLost() const {
  for (int rank = 0; rank < size(); ++rank) {
    const RankState state = memory_->status(rank).state.load(std::memory_order_acquire);
    if (state == RankState::Failed || state == RankState::Gone || state == RankState::Lost) {
      return rank;
    }
  }
  return -1;
}

bool JobMonitor::keep(JobFailure failure) {
  std::lock_guard lock(mutex_);
  if (failed_.load(std::memory_order_relaxed)) return false;
  failure_ = std::move(failure);
  failed_.store(true, std::memory_order_release);
  return true;
}

bool JobMonitor::isOneOfProcesses() const {
  return places_.inProcessOf(rank_).size() < static_cast<size_t>(size());
}

void JobMonitor::say() const {
  if (options_.on_failure) return;  // whose it is
  std::fprintf(stderr, "heddle: rank %d: %s\n", rank_, failure().text.c_str());
}

void JobMonitor::tellOwner() {
  if (owner_told_.exchange(true)) return;  // by the watcher, while the last runs are compared
  const JobFailure failure = this->failure();
  if (options_.on_failure) {
    options_.on_failure(failure);
  } else {
    if (isOneOfProcesses()) say();
    world_.interrupt(failure.text);
  }
}

std::string JobMonitor::instructionText(uint64_t program, int32_t instruction) const {
  std::lock_guard lock(mutex_);
  const auto found = programs_.find(program);
  if (found == programs_.end() || instruction < 0 ||
      static_cast<size_t>(instruction) >= found->second.size()) {
    return fmt::format("instruction {}", instruction);
  }
  return fmt::format("instruction {} ({})", instruction,
                     found->second[static_cast<size_t>(instruction)]);
}

std::string JobMonitor::placeOf(const RankSnapshot& entry) const {
  if (entry.phase == RankPhase::Idle) return "before its first run";
  if (entry.phase == RankPhase::Compiling) return fmt::format("before run {}", entry.run + 1);
  if (entry.phase == RankPhase::Done) return fmt::format("after run {}", entry.run);
  if (entry.phase == RankPhase::Ended) return fmt::format("after its last run, {}", entry.run);
  const auto text = [&](int32_t index) { return instructionText(entry.program, index); };
  std::string place = fmt::format("in run {}", entry.run);
  if (entry.issued == kAgreeing) return place + " comparing what it will post with its peers";
  const char* between = " at ";
  if (entry.communicating >= 0) {
    place += " communicating at " + text(entry.communicating);
    between = ", ";
  }
  if (entry.computing >= 0) {
    place +=
        (entry.communicating >= 0 ? ", computing at " : " computing at ") + text(entry.computing);
    between = ", ";
  }
  if (entry.issued >= 0 && entry.issued != entry.communicating && entry.issued != entry.computing) {
    const bool first = *between == ' ';
    place += (first ? " at " : ", issued up to ") + text(entry.issued);
  }
  return place;
}

std::string JobMonitor::describeLost(int rank) const {
  const RankSnapshot lost = entry(rank);
  switch (lost.state) {
    case RankState::Failed:
      return fmt::format("rank {} failed {}: {}\n", rank, placeOf(lost), lost.reason);
    case RankState::Left:
      return fmt::format("rank {} left the job {}, while others need it\n", rank, placeOf(lost));
    default:
      return fmt::format("rank {} is lost {}: {}\n", rank, placeOf(lost), lost.reason);
  }
}

std::string JobMonitor::positions() const {
  std::string text;
  for (int rank = 0; rank < size(); ++rank) {
    const RankSnapshot at = entry(rank);
    text += fmt::format("  rank {} (pid {} on {}): {}", rank, at.pid, at.host, stateText(at));
    if (at.state != RankState::Absent) text += ", " + placeOf(at);
    if (rank + 1 < size()) text += "\n";
  }
  return text;
}

JobMonitor& jobMonitorOf(World& world, const JobMonitorOptions& options) {
  return static_cast<JobMonitor&>(
      world.monitor([&] { return std::make_unique<JobMonitor>(world, options); }));
}

}  // namespace heddle::comm
