#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "ir/system/temp_folders.h"

namespace heddle::codegen {

struct ProcessResult {
  bool started = false;
  int start_error = 0;     // errno if the program did not start; ENOENT: there is no such program
  bool timed_out = false;  // runProcess() has ended the program because of the time limit
  // 128 + signal if a signal killed the program. -1 if the program did not start, or if waiting for
  // it failed, for example because this process ignores SIGCHLD.
  int exit_code = -1;
  // The first 1 MiB of stdout and stderr, in the order of arrival; or why the program did not
  // start.
  std::string output;
};

// Runs a program (looked up on PATH) without a shell and without input, and waits until it has
// ended. Does not wait for processes that the program leaves in the background. If the program
// still runs after `limit`, ends it and its descendants. Thread-safe.
ProcessResult runProcess(const std::vector<std::string>& command,
                         std::chrono::milliseconds limit = std::chrono::minutes(10));

// Ends all running programs that runProcess() started, with their descendants, and removes the
// folder of every TempFolder. Call this right before _exit(). Other threads may still be in
// runProcess(). After this call, runProcess() starts no program, and the constructor of TempFolder
// throws UserError. The call takes about 0.2 s if a program ignores SIGTERM. Thread-safe.
void endChildProcesses() noexcept;

// A new folder that only this user may enter, under $TMPDIR (default: /tmp). The destructor removes
// the folder with its contents. The constructor throws UserError if it cannot create the folder, or
// if another user (except root) could replace the folder by another folder.
//
// A process holds a lock on each of its folders. The first TempFolder of a process removes the
// unlocked folders that killed processes of this user have left in the same place.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return folder_.path; }

 private:
  LockedFolder folder_;
};

// Returns `text` with a number before each line, for error messages.
std::string numberLines(const std::string& text);

}  // namespace heddle::codegen
