#include "tools/heddle/job_end.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>

#include "codegen/compile/child_process.h"
#include "ir/base/check.h"
#include "tools/heddle/job.h"

namespace heddle::tools {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kLostCode = 2;
constexpr int kSignalCode = 128;  // plus the signal number: the exit code, as in a shell
constexpr auto kStartGoodbye = std::chrono::milliseconds(500);
// The other ranks get this part of the deadline to print, but at most kLongestGoodbye seconds.
// mpirun waits two seconds before it kills processes.
constexpr double kGoodbyePart = 0.2;
constexpr double kLongestGoodbye = 2;
constexpr auto kNap = std::chrono::milliseconds(10);

std::atomic<int> end_signal{0};
std::atomic<bool> signal_is_polled{false};
// true: the signal handler has started to end the process.
std::atomic<bool> is_ending{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

// The messages of the signal handler, by task. catchEndSignal() formats them before it installs the
// handler, because a signal handler may not format text. They are plain arrays, because the handler
// may still run after the destructors of static objects.
struct LastWords {
  char text[160];
  size_t bytes = 0;
};
LastWords last_words[comm::kRankTasks];
std::atomic<comm::RankTask> process_task{comm::RankTask::None};
static_assert(std::atomic<comm::RankTask>::is_always_lock_free);

// true: setErrorReported() was called.
std::atomic<bool> error_is_reported{false};

// true: a thread has started to end the process.
std::atomic<bool> ends{false};
// true: the failure has been printed.
std::atomic<bool> told{false};
// The job monitor while a WatcherPoll exists, otherwise nullptr.
std::atomic<comm::JobMonitor*> job_monitor{nullptr};
std::atomic<double> goodbye{0};  // seconds that the other ranks get to print

void sayLastWords() {
  if (error_is_reported.load()) return;
  const LastWords& words = last_words[static_cast<size_t>(process_task.load())];
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, words.text, words.bytes);
}

void onEndSignal(int signal) {
  if (signal_is_polled.load()) return end_signal.store(signal);
  // The same signal can arrive twice, because `timeout` sends it to the process and to its group.
  // A second thread may then run this handler before the first one has ended the process.
  if (is_ending.exchange(true)) return;
  sayLastWords();
  _exit(error_is_reported.load() ? kLostCode : kSignalCode + signal);
}

[[noreturn]] void waitForEnd() {
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

// Ends the process. Only one thread calls this function: the one that has set `ends`, or a thread
// that it has started. If there is a job monitor, the process first waits until this rank has
// printed a failure or has the status RankState::Failed, and until the other ranks have printed. It
// waits at most `goodbye` seconds.
[[noreturn]] void leave(int code) {
  codegen::endChildProcesses();
  comm::JobMonitor* const monitor = job_monitor.load();
  if (monitor == nullptr) _exit(code);
  const auto until = SteadyClock::now() + std::chrono::duration<double>(goodbye.load());
  const auto naps = [&] {
    std::this_thread::sleep_for(kNap);
    return SteadyClock::now() < until;
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

// Returns the text of a failure without its first line. Each remaining line says what one rank was
// doing.
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

// Chooses the cause to throw. If the job monitor names a rank that has reported its own error, this
// error is the cause. Otherwise the text of the monitor is the cause. The errors of the ranks are
// then only consequences of the failure that the monitor has detected. If no monitor has detected a
// failure, the error that was stored first is the cause.
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
  } catch (const std::bad_alloc&) {
    userError("rank {}: out of memory{}", rank, positions);
  } catch (const std::exception& error) {
    throw InternalError(fmt::format("rank {}: {}{}", rank, error.what(), positions));
  }
}

void catchEndSignal(bool is_polled) {
  const std::optional<ProcessRank> process = processRank();
  const std::string who = process ? fmt::format("rank {} ends: ", process->rank) : "";
  for (uint32_t task = 0; task < comm::kRankTasks; ++task) {
    const std::string_view doing = describe(static_cast<comm::RankTask>(task));
    const std::string text = fmt::format("heddle: {}told to end by signal {}{}{}\n", who, SIGTERM,
                                         doing.empty() ? "" : " while it ", doing);
    last_words[task].bytes = text.copy(last_words[task].text, sizeof last_words[task].text);
  }
  signal_is_polled.store(is_polled);
  struct sigaction action = {};
  action.sa_handler = onEndSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
}

void setErrorReported() {
  error_is_reported.store(true);
  signal_is_polled.store(false);
}

const std::atomic<int>& endSignal() { return end_signal; }

void setProcessTask(comm::RankTask task) {
  if (end_signal.load() == 0) process_task.store(task);
}

ProcessTask::ProcessTask(comm::RankTask task) : before_(process_task.load()) {
  setProcessTask(task);
}
ProcessTask::~ProcessTask() { setProcessTask(before_); }

void endBeforeStart(const std::string& text, int signal) {
  const std::optional<ProcessRank> process = processRank();
  say(fmt::format("rank {} ends: {}", process ? process->rank : 0, text));
  // Wait before exiting, so that the other processes can print: mpirun ends all processes when the
  // first one exits.
  std::this_thread::sleep_for(kStartGoodbye);
  _exit(signal != 0 ? kSignalCode + signal : kLostCode);
}

WatcherPoll::WatcherPoll(comm::JobMonitor& monitor, double deadline) {
  goodbye.store(std::min(kGoodbyePart * deadline, kLongestGoodbye));
  job_monitor.store(&monitor);
  signal_is_polled.store(true);
}

WatcherPoll::~WatcherPoll() {
  setProcessTask(comm::RankTask::Leaving);
  signal_is_polled.store(false);
  const int signal = end_signal.load();
  if (signal != 0 && !ends.exchange(true)) {
    sayLastWords();
    told.store(true);
    leave(kSignalCode + signal);
  }
  // Clear job_monitor before reading `ends`, so that a thread that sets `ends` later finds no job
  // monitor.
  job_monitor.store(nullptr);
  if (ends.load()) waitForEnd();
}

void endProcess(int rank, const comm::JobFailure& failure) {
  // A rank that is lost without an error of its own prints nothing.
  if (failure.rank != rank || failure.told)
    say(fmt::format("rank {} ends: {}", rank, failure.text));
  told.store(true);
  if (ends.exchange(true)) return;
  // Use a new thread, because the thread of the job monitor must still send rank statuses to other
  // machines.
  try {
    std::thread([] { leave(kLostCode); }).detach();
  } catch (const std::system_error&) {
    leave(kLostCode);  // the system starts no more threads
  }
}

void endBySignal(int ranks, const comm::JobFailure& failure) {
  if (ends.exchange(true)) return;
  const size_t line = failure.text.find('\n');
  say(ranks == 1 ? failure.text.substr(0, line)
                 : fmt::format("told to end by signal {}{}", failure.signal, positionsIn(failure)));
  told.store(true);
  leave(kSignalCode + failure.signal);
}

void endFailedProcess(const comm::JobMonitor& monitor, const std::string& reason, int code) {
  if (ends.exchange(true)) waitForEnd();
  say(fmt::format("rank {}: {}", monitor.rank(), reason));
  leave(code);
}

}  // namespace heddle::tools
