#include "tools/heddle/job_end.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "ir/error.h"
#include "tools/heddle/job.h"

namespace heddle::tools {
namespace {

constexpr int kLostCode = 2;
constexpr int kSignalCode = 128;  // plus the signal's number, as a shell counts
constexpr auto kLongestGoodbye = std::chrono::milliseconds(500);
constexpr auto kNap = std::chrono::milliseconds(5);

std::atomic<int> end_signal{0};
std::atomic<bool> somebody_looks{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

// What a signal handler can say: made before it may be called.
std::string& lastWords() {
  static std::string words;
  return words;
}

void onEndSignal(int signal) {
  if (somebody_looks.load()) return end_signal.store(signal);
  const std::string& words = lastWords();
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, words.data(), words.size());
  _exit(kSignalCode + signal);
}

// The lines of the ranks, which follow the first one.
std::string positionsIn(const comm::JobFailure& failure) {
  const size_t line = failure.text.find('\n');
  return line == std::string::npos ? std::string() : failure.text.substr(line);
}

}  // namespace

void RankErrors::keep(std::exception_ptr error, int rank, const comm::ControlBoard* board) {
  std::lock_guard lock(mutex_);
  if (first_ < 0) first_ = rank;
  errors_.emplace(rank, error);
  if (!failure_ && board != nullptr && board->failed()) failure_ = board->failure();
}

// What a rank says of itself is the cause, if the board names it; what the board has found out
// otherwise is more than the others' errors, which follow from it.
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
  lastWords() = fmt::format("heddle: rank {} ends: told to end by signal {} as it leaves its job\n",
                            process ? process->rank : 0, SIGTERM);
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
  std::this_thread::sleep_for(kLongestGoodbye);
  _exit(signal != 0 ? kSignalCode + signal : kLostCode);
}

BoardLooks::~BoardLooks() {
  somebody_looks.store(false);
  const int signal = end_signal.load();
  if (signal != 0) _exit(kSignalCode + signal);
}

void endProcess(int rank, const comm::JobFailure& failure) {
  // The one to blame says only what it has thrown itself.
  if (failure.rank != rank || failure.told)
    say(fmt::format("rank {} ends: {}", rank, failure.text));
  _exit(kLostCode);
}

void endFailedProcess(const comm::ControlBoard& board, const std::string& reason, int code) {
  say(fmt::format("rank {}: {}", board.rank(), reason));
  const auto until = std::chrono::steady_clock::now() + kLongestGoodbye;
  const auto somebodyIsThere = [&] {
    for (int rank = 0; rank < board.size(); ++rank) {
      if (rank != board.rank() && board.entry(rank).state == comm::RankState::Well) return true;
    }
    return false;
  };
  while (somebodyIsThere() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kNap);
  }
  _exit(code);
}

}  // namespace heddle::tools
