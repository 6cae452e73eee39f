#include "tools/heddle/job_end.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "codegen/compile/child_process.h"
#include "ir/base/error.h"
#include "tools/heddle/job.h"

namespace heddle::tools {
namespace {

using VectorClock = std::chrono::steady_clock;

constexpr int kLostCode = 2;
constexpr int kSignalCode = 128;  // plus the signal's number, as a shell counts
constexpr auto kStartGoodbye = std::chrono::milliseconds(500);
// For the others to print: of the deadline, and in seconds. mpirun leaves them two.
constexpr double kGoodbyePart = 0.2;
constexpr double kLongestGoodbye = 2;
constexpr auto kNap = std::chrono::milliseconds(10);

std::atomic<int> end_signal{0};
std::atomic<bool> somebody_looks{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

// What a signal handler can say: made before it may be called, and there after the destructors of
// statics, as the handler is.
char last_words[128];
size_t last_words_bytes = 0;

// Some thread has taken the end of the process upon itself.
std::atomic<bool> ends{false};
// on_failure has been called, and has said what there was to say.
std::atomic<bool> told{false};
// While a WatcherPoll lives.
std::atomic<comm::JobMonitor*> job_board{nullptr};
std::atomic<double> goodbye{0};  // seconds

void sayLastWords() {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, last_words, last_words_bytes);
}

void onEndSignal(int signal) {
  if (somebody_looks.load()) return end_signal.store(signal);
  sayLastWords();
  _exit(kSignalCode + signal);
}

[[noreturn]] void waitForEnd() {
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

// On the thread that has set `ends`. Who only follows another rank's failure says who it was on the
// job monitor's thread, which may be on its way.
[[noreturn]] void leave(int code) {
  codegen::endChildProcesses();
  comm::JobMonitor* const monitor = job_board.load();
  if (monitor == nullptr) _exit(code);
  const auto until = VectorClock::now() + std::chrono::duration<double>(goodbye.load());
  const auto naps = [&] {
    std::this_thread::sleep_for(kNap);
    return VectorClock::now() < until;
  };
  const auto hasSpoken = [&] {
    return told.load() || monitor->entry(monitor->rank()).state == comm::RankState::Failed;
  };
  while (!hasSpoken() && naps()) {
  }
  monitor->setReported();
  while (!monitor->othersHaveReported() && naps()) {
  }
  _exit(code);
}

// The lines of the ranks, which follow the first one.
std::string positionsIn(const comm::JobFailure& failure) {
  const size_t line = failure.text.find('\n');
  return line == std::string::npos ? std::string() : failure.text.substr(line);
}

}  // namespace

void RankErrors::keep(std::exception_ptr error, int rank, const comm::JobMonitor* monitor) {
  std::lock_guard lock(mutex_);
  if (first_ < 0) first_ = rank;
  errors_.emplace(rank, error);
  if (!failure_ && monitor != nullptr && monitor->failed()) failure_ = monitor->failure();
}

// What a rank says of itself is the cause, if the job monitor names it; what the job monitor has
// found out otherwise is more than the others' errors, which follow from it.
void RankErrors::rethrow(int ranks) {
  if (errors_.empty()) return;
  if (ranks == 1) std::rethrow_exception(errors_.begin()->second);
  const bool told = failure_ && failure_->told && errors_.contains(failure_->rank);
  if (failure_ && !told) userError("{}", failure_->text);
  const int rank = told ? failure_->rank : first_;
  const std::string positions = told ? positionsIn(*failure_) : std::string();
  try {
    std::rethrow_exception(errors_.at(rank));
  } catch (const UserError& error) {
    userError("rank {}: {}{}", rank, error.what(), positions);
  } catch (const std::exception& error) {
    throw InternalError(fmt::format("rank {}: {}{}", rank, error.what(), positions));
  }
}

void catchEndSignal() {
  const std::optional<ProcessRank> process = processRank();
  const std::string words =
      fmt::format("heddle: rank {} ends: told to end by signal {} as it leaves its job\n",
                  process ? process->rank : 0, SIGTERM);
  last_words_bytes = words.copy(last_words, sizeof last_words);
  somebody_looks.store(true);
  struct sigaction action = {};
  action.sa_handler = onEndSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
}

const std::atomic<int>& endSignal() { return end_signal; }

void endBeforeStart(const std::string& text, int signal) {
  const std::optional<ProcessRank> process = processRank();
  say(fmt::format("rank {} ends: {}", process ? process->rank : 0, text));
  // When the first goes mpirun ends all at once: others speak before that.
  std::this_thread::sleep_for(kStartGoodbye);
  _exit(signal != 0 ? kSignalCode + signal : kLostCode);
}

WatcherPoll::WatcherPoll(comm::JobMonitor& monitor, double deadline) {
  goodbye.store(std::min(kGoodbyePart * deadline, kLongestGoodbye));
  job_board.store(&monitor);
}

WatcherPoll::~WatcherPoll() {
  somebody_looks.store(false);
  const int signal = end_signal.load();
  if (signal != 0 && !ends.exchange(true)) {
    sayLastWords();
    told.store(true);
    leave(kSignalCode + signal);
  }
  // In this order: a thread that sets `ends` later finds no job monitor.
  job_board.store(nullptr);
  if (ends.load()) waitForEnd();
}

void endProcess(int rank, const comm::JobFailure& failure) {
  // The one to blame says only what it has thrown itself.
  if (failure.rank != rank || failure.told)
    say(fmt::format("rank {} ends: {}", rank, failure.text));
  told.store(true);
  if (ends.exchange(true)) return;
  // The job monitor's thread goes on: what it knows is still to get to other hosts.
  std::thread([] { leave(kLostCode); }).detach();
}

void endFailedProcess(const comm::JobMonitor& monitor, const std::string& reason, int code) {
  if (ends.exchange(true)) waitForEnd();
  say(fmt::format("rank {}: {}", monitor.rank(), reason));
  leave(code);
}

}  // namespace heddle::tools
