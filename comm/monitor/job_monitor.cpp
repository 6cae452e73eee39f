#include "comm/monitor/job_monitor.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>

#include "comm/monitor/shared_memory.h"
#include "comm/monitor/watcher.h"
#include "comm/process/process_info.h"
#include "comm/process/start_timeout.h"
#include "ir/base/check.h"

namespace heddle::comm {
namespace {

constexpr double kLongest = 1e8;  // the largest time limit, in seconds: about three years
// The longest time for which the destructor of a failed rank's monitor waits for the other ranks.
constexpr std::chrono::milliseconds kLongestLeave{2000};

void check(const JobMonitorOptions& options) {
  HEDDLE_USER_CHECK(options.deadline > 0 && options.deadline <= kLongest,
                    "a deadline of {} seconds: more than 0 and at most {} expected",
                    options.deadline, kLongest);
  HEDDLE_USER_CHECK(options.patience >= 0 && options.patience <= kLongest,
                    "a patience of {} seconds: 0 (for ever) to {} expected", options.patience,
                    kLongest);
  HEDDLE_USER_CHECK(options.start >= 0 && options.start <= kLongest,
                    "{} seconds for the start of a job: 0 (for ever) to {} expected", options.start,
                    kLongest);
}

std::string_view stateText(const RankSnapshot& entry) {
  static constexpr std::array kStates{"", "", "failed", "left", "gone", "lost", "lost"};
  static constexpr std::array kPhases{"idle", "compiling", "computing", "communicating",
                                      "done", "finished",  "finished"};
  static_assert(kStates.size() == static_cast<size_t>(RankState::Stuck) + 1 &&
                kPhases.size() == static_cast<size_t>(RankPhase::Unwinding) + 1);
  // The facts of a rank come from other processes, so a number may be out of range.
  const auto text_of = [](const auto& texts, auto number) {
    const auto i = static_cast<size_t>(number);
    return i < texts.size() ? texts[i] : "?";
  };
  if (entry.state > RankState::Writing) return text_of(kStates, entry.state);
  return entry.wait == RankWait::None ? text_of(kPhases, entry.phase) : "waiting";
}

// Returns the task of a rank and its wait in a call of the World, as a part of a sentence. Empty:
// it has neither. If all ranks must make this call, the text names the ranks that have begun fewer
// calls.
std::string taskOf(const std::vector<RankSnapshot>& ranks, const RankSnapshot& entry) {
  std::string text;
  if (entry.task != RankTask::None) text = fmt::format(", while it {}", describe(entry.task));
  if (entry.wait == RankWait::None) return text;
  std::vector<int> absent;
  for (const RankSnapshot& other : ranks) {
    if (entry.wait == RankWait::Job && other.calls < entry.calls) absent.push_back(other.rank);
  }
  return fmt::format("{}{} waits for {}{}", text, text.empty() ? ", while it" : " and",
                     nameRanks(absent), text.empty() ? " in a call of its World" : "");
}

}  // namespace

// The constructor adds the monitor as an observer of the World last, because beginWait(), endWait()
// and setTask() write to `statuses_`.
JobMonitor::JobMonitor(World& world, JobMonitorOptions options)
    : world_(world),
      rank_(world.rank()),
      options_(std::move(options)),
      exceptions_(std::uncaught_exceptions()) {
  check(options_);
  const StartTimeout timeout(options_.start, nullptr, "the other ranks to create the job monitor",
                             [this](const std::string& text, int) {
                               world_.interrupt(fmt::format("rank {} ends: {}", rank_, text));
                             });
  locations_ = findLocations(world, options_.machine_key);
  checkTimeLimits();
  const size_t ranks = locations_.ranks.size();
  statuses_ = shareArrayOnMachine<RankStatus>(world, locations_, "status", ranks);
  if (ranks <= PostedCounts::kMostRanks) {
    counts_ = shareArrayOnMachine<PostedCounts>(world, locations_, "status-counts", ranks);
  }
  activity_ = std::make_unique<RankActivity>(mine());
  std::unique_ptr<TcpLink> link = TcpLink::connect(world, locations_, statuses_, options_.deadline);
  watcher_ = Watcher::of(statuses_, locations_, options_, rank_);
  watcher_->add(*this, std::move(link));
  world_.addObserver(*this, options_.patience);
}

// The limits must be equal on all ranks. A rank with a shorter limit would report other ranks as
// lost although they may still wait. If the limits differ, all ranks throw the same error.
void JobMonitor::checkTimeLimits() {
  const auto mine = fmt::format("a deadline of {} s and a patience of {} s", options_.deadline,
                                options_.patience);
  const std::vector<std::string> all = world_.exchange(mine);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    HEDDLE_USER_CHECK(all[rank] == all[0],
                      "the time limits differ between ranks, and must not: rank 0 has {}, rank {} "
                      "has {}",
                      all[0], rank, all[rank]);
  }
}

JobMonitor::~JobMonitor() {
  world_.removeObserver(*this);
  if (std::uncaught_exceptions() > exceptions_) {
    fail("it left the job by an exception");
  } else {
    compareLastRuns();
  }
  mine().state.leave(RankState::Left, "");
  setReported();
  if (mine().state.get() == RankState::Failed && isOneOfProcesses()) awaitOthers();
  watcher_->remove(*this);
}

void JobMonitor::awaitOthers() const {
  const auto until = std::chrono::steady_clock::now() + kLongestLeave;
  for (int rank = 0; rank < size(); ++rank) {
    const StateWithReason& state = statuses_[rank].state;
    while (rank != rank_ && state.get() <= RankState::Writing &&
           std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

// When this rank is no longer Alive, beginWait(), endWait() and setTask() change nothing, so that
// messages show what the rank did when it failed or left.
void JobMonitor::beginWait(bool of_job) {
  if (mine().state.get() != RankState::Alive) return;
  if (of_job) mine().calls.fetch_add(1);
  mine().wait.store(of_job ? RankWait::Job : RankWait::Some);
}

void JobMonitor::endWait() {
  if (mine().state.get() == RankState::Alive) mine().wait.store(RankWait::None);
}

// If a rank begins its task again, a part of the task is done, for example one kernel is tuned.
// This is progress, so the time limit JobMonitorOptions::patience starts again.
void JobMonitor::setTask(RankTask task) {
  if (mine().state.get() != RankState::Alive) return;
  if (mine().task.exchange(task) == task) mine().progress.fetch_add(1);
}

void JobMonitor::compareCounts(uint64_t stamp, const std::vector<int>& members,
                               std::span<const int64_t> sends,
                               std::span<const int64_t> expects) const {
  if (counts_ == nullptr) return;
  comm::compareCounts({counts_.get(), locations_.ranks.size()}, rank_, stamp, members, sends,
                      expects);
}

void JobMonitor::compareRuns() const {
  if (firstDifferentRun(entry(rank_), entry((rank_ + 1) % size())) == 0) return;
  const std::vector<RunDifference> found = findRunDifferences(readAll(statuses()));
  if (found.empty()) return;
  const auto& [blamed, other, reason] = found.front();
  statuses_[blamed].state.leave(RankState::Lost, reason);
  watcher_->wake();
  userErrorWith(ErrorCode::RankLost, "{}", describeLost(readAll(statuses()), blamed, reason));
}

// Compares the runs of all ranks for the last time, when this rank leaves. The watcher will soon
// stop serving this monitor, so this function reports a difference itself.
void JobMonitor::compareLastRuns() {
  if (failed()) return;
  const std::vector<RunDifference> found = findRunDifferences(readAll(statuses()));
  if (found.empty()) return;
  const auto& [blamed, other, reason] = found.front();
  StateWithReason& state = statuses_[blamed].state;
  // If the blamed rank has already left, its state cannot change. This rank then becomes Failed,
  // so that the job fails.
  if (!state.leave(RankState::Lost, reason) && !isLost(state.get())) {
    mine().state.leave(RankState::Failed, reason);
  }
  std::string text = describeLost(readAll(statuses()), blamed, reason);
  if (!setFailure({blamed, false, 0, ErrorCode::RankLost, std::move(text)})) return;
  if (!isOneOfProcesses()) print();
  notifyOwner();
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

void JobMonitor::fail(const std::string& reason) noexcept {
  try {
    if (failed()) return;
    const int lost = firstLost();
    if (lost >= 0) {
      mine().state.leave(RankState::Left, fmt::format("ended because of rank {}", lost));
    } else if (mine().state.leave(RankState::Failed, reason)) {
      setFailure(describeFailure(readAll(statuses()), rank_));
      watcher_->wake();
    }
  } catch (const std::exception&) {
    // This process is out of memory and cannot create a message. The other ranks detect the
    // failure by the state or the heartbeat of this rank.
  }
}

bool JobMonitor::othersHaveReported() const {
  const std::vector<int> here = locations_.onMachineOf(rank_);
  for (int rank = 0; rank < size(); ++rank) {
    const RankStatus& status = statuses_[rank];
    const RankState state = status.state.get();
    const bool lost = state != RankState::Failed && isLost(state);
    if (rank == rank_ || lost || status.reported.load()) continue;
    const bool is_here = std::binary_search(here.begin(), here.end(), rank);
    const int pid = locations_[rank].pid;
    if (is_here ? !processState(pid).isGone() : state <= RankState::Writing) return false;
  }
  return true;
}

JobFailure JobMonitor::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

std::optional<JobFailure> JobMonitor::findFailure() const {
  if (failed()) return failure();
  const int lost = firstLost();
  if (lost < 0) return std::nullopt;
  return describeFailure(readAll(statuses()), lost);
}

int JobMonitor::firstLost() const {
  for (int rank = 0; rank < size(); ++rank) {
    if (isLost(statuses_[rank].state.get())) return rank;
  }
  return -1;
}

// Only the first call stores its argument and returns true.
bool JobMonitor::setFailure(JobFailure failure) {
  std::lock_guard lock(mutex_);
  if (failed_.load(std::memory_order_relaxed)) return false;
  failure_ = std::move(failure);
  failed_.store(true, std::memory_order_release);
  return true;
}

// Handles a failure that the watcher reports: `rank` has failed or left too early, or a signal
// (`signal` is not 0) asked this process to end. `ranks` are the statuses of all ranks at that
// time. If another rank is to blame, the state of this rank becomes Left, so that this rank is not
// reported as a second failure. After a signal, the state becomes Failed.
void JobMonitor::reportFailure(const RankSnapshots& ranks, int rank, int signal) {
  JobFailure failure;
  if (signal == 0) {
    failure = describeFailure(ranks, rank);
    mine().state.leave(RankState::Left, fmt::format("ended because of rank {}", rank));
  } else {
    failure.signal = signal;
    const RankSnapshot& own = ranks[rank_];
    failure.text = fmt::format("told to end by signal {} {}\n{}", signal, positionOf(ranks, own),
                               positions(ranks));
    mine().state.leave(RankState::Failed, fmt::format("told to end by signal {}", signal));
  }
  setFailure(std::move(failure));
  notifyOwner();
}

bool JobMonitor::isOneOfProcesses() const {
  return locations_.inProcessOf(rank_).size() < locations_.ranks.size();
}

void JobMonitor::print() const {
  if (options_.on_failure) return;  // on_failure prints the failure itself
  std::fprintf(stderr, "heddle: rank %d: %s\n", rank_, failure().text.c_str());
}

// Calls on_failure or interrupts the World, but only once. The thread of the watcher and the
// destructor may call this function at the same time.
void JobMonitor::notifyOwner() {
  if (owner_notified_.exchange(true)) return;
  const JobFailure failure = this->failure();
  if (options_.on_failure) return options_.on_failure(failure);
  if (isOneOfProcesses()) print();
  world_.interrupt(failure.text);
}

std::string JobMonitor::instructionText(uint64_t program, int32_t instruction) const {
  std::lock_guard lock(mutex_);
  const auto found = programs_.find(program);
  const std::string number = fmt::format("instruction {}", instruction);
  const size_t at = instruction;
  if (found == programs_.end() || instruction < 0 || at >= found->second.size()) return number;
  return fmt::format("{} ({})", number, found->second[at]);
}

std::string JobMonitor::positionOf(const RankSnapshots& ranks, const RankSnapshot& entry) const {
  return positionInRuns(entry) + taskOf(ranks, entry);
}

std::string JobMonitor::positionInRuns(const RankSnapshot& entry) const {
  if (entry.phase == RankPhase::Idle) return "before its first run";
  if (entry.phase == RankPhase::Compiling) return fmt::format("before run {}", entry.run + 1);
  // RankStatus::run does not count runs of programs that communicate on no rank, so the text gives
  // no number for these runs.
  const bool has_number = entry.isInRun() ? entry.finished < entry.run : entry.run > 0;
  const std::string number = has_number ? std::to_string(entry.run) : "";
  if (entry.phase == RankPhase::Done) return has_number ? "after run " + number : "between runs";
  if (entry.beginsNoMoreRuns()) return "after its last run" + (has_number ? ", " + number : "");
  std::string text = has_number ? "in run " + number : "in a run";
  if (entry.issued == kMatchingPosts) return text + " comparing its posts with the other ranks";
  std::string_view separator = " ";
  const auto add = [&](std::string_view what, int32_t instruction) {
    text += fmt::format("{}{}{}", separator, what, instructionText(entry.program, instruction));
    separator = ", ";
  };
  if (entry.communicating >= 0) add("communicating at ", entry.communicating);
  if (entry.computing >= 0) add("computing at ", entry.computing);
  if (entry.issued >= 0 && entry.issued != entry.communicating && entry.issued != entry.computing) {
    add(separator == " " ? "at " : "issued up to ", entry.issued);
  }
  return text;
}

std::string JobMonitor::describeLost(const RankSnapshots& ranks, int rank,
                                     std::string_view reason) const {
  return fmt::format("rank {} is lost {}: {}\n{}", rank, positionOf(ranks, ranks[rank]), reason,
                     positions(ranks));
}

JobFailure JobMonitor::describeFailure(const RankSnapshots& ranks, int rank) const {
  const RankSnapshot& lost = ranks[rank];
  if (lost.state != RankState::Failed && lost.isLost()) {
    const bool is_stuck = lost.state == RankState::Stuck;
    return {rank, false, 0, is_stuck ? ErrorCode::Deadlock : ErrorCode::RankLost,
            describeLost(ranks, rank, lost.reason)};
  }
  const bool failed = lost.state == RankState::Failed;
  const std::string position = positionOf(ranks, lost);
  const std::string what = failed ? fmt::format("failed {}: {}", position, lost.reason)
                                  : fmt::format("left the job {}, while others need it", position);
  return {rank, failed, 0, ErrorCode::RankLost,
          fmt::format("rank {} {}\n{}", rank, what, positions(ranks))};
}

std::string JobMonitor::positions(const RankSnapshots& ranks) const {
  std::string text;
  for (const RankSnapshot& at : ranks) {
    const RankLocations::Location& location = locations_[at.rank];
    text += fmt::format("{}  rank {} ({}): {}, {}", at.rank == 0 ? "" : "\n", at.rank,
                        location.text(), stateText(at), positionOf(ranks, at));
  }
  return text;
}

JobMonitor& jobMonitorOf(World& world, const JobMonitorOptions& options) {
  return static_cast<JobMonitor&>(
      world.monitor([&] { return std::make_unique<JobMonitor>(world, options); }));
}

}  // namespace heddle::comm
