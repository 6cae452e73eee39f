#pragma once

#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "comm/monitor/job_monitor.h"

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
// As long as it lives the control board of this process, which outlives it, looks at endSignal(),
// and what ends the process asks it for the other ranks. When the process is at its end by then,
// the destructor does not return.
class BoardLooks {
 public:
  // `deadline`: that of the board.
  BoardLooks(comm::ControlBoard& board, double deadline);
  ~BoardLooks();
  BoardLooks(const BoardLooks&) = delete;
  BoardLooks& operator=(const BoardLooks&) = delete;
};

// A process that is one rank ends when the others have printed too, or after a part of the deadline
// that is left for it: as soon as one is gone mpirun kills the rest. Compilers that it has started
// end before it.

// ControlOptions::on_failure: prints the failure, and has a thread of its own end the process.
void endProcess(int rank, const comm::JobFailure& failure);
// The rank has thrown: says why and ends the process.
[[noreturn]] void endFailedProcess(const comm::ControlBoard& board, const std::string& reason,
                                   int code);

}  // namespace heddle::tools
