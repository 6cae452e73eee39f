#pragma once

#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "comm/control_board.h"

// How the ranks of a job that fails come to their end.
namespace heddle::tools {

// The errors of ranks that are threads of this process, and what their control boards say.
class RankErrors {
 public:
  // `board`: nullptr when it was not made.
  void keep(std::exception_ptr error, int rank, const comm::ControlBoard* board);
  // The cause, if anything was kept, with a line for each rank of a job of several.
  void rethrow(int ranks);

 private:
  std::mutex mutex_;
  int first_ = -1;
  std::map<int, std::exception_ptr> errors_;
  std::optional<comm::JobFailure> failure_;
};

// From here on a SIGTERM is left for who looks at endSignal(): comm::StartWatch, then the control
// board, as long as a BoardLooks lives. Afterwards it ends the process.
void catchEndSignal();
// On a thread of comm::StartWatch: prints why the job has not started and ends this process.
[[noreturn]] void endBeforeStart(const std::string& text, int signal);
// The signal that came; for ControlOptions::end_signal.
const std::atomic<int>& endSignal();
// When it goes, a control board looks no more at endSignal().
class BoardLooks {
 public:
  BoardLooks() = default;
  ~BoardLooks();
};

// ControlOptions::on_failure of a process that is one rank: prints the failure and ends it.
[[noreturn]] void endProcess(int rank, const comm::JobFailure& failure);
// The rank has thrown: says why, gives the others a moment to print, and ends the process.
[[noreturn]] void endFailedProcess(const comm::ControlBoard& board, const std::string& reason,
                                   int code);

}  // namespace heddle::tools
