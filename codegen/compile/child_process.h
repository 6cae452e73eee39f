#pragma once

#include <string>
#include <vector>

namespace heddle::codegen {

struct ProcessResult {
  bool started = false;
  int exit_code = -1;  // 128 + the number of the signal, if a signal killed the program
  std::string output;  // stdout and stderr together; if `started` is false: why the start failed
};

// Runs a program (looked up on PATH) without a shell and waits for its end. Thread-safe.
ProcessResult runProcess(const std::vector<std::string>& command);

// Ends all running programs that runProcess() started, with their descendants, and removes the
// folder of every TempFolder. Call this right before _exit(). Other threads may still be in
// runProcess(). Afterwards runProcess() starts no program, and the constructor of TempFolder
// throws. Takes 0.2 s if a program ignores SIGTERM. Thread-safe.
void endChildProcesses() noexcept;

// A new folder that only the user of this process can access. The constructor creates it under
// $TMPDIR, or under /tmp if TMPDIR is unset. It throws UserError if it cannot create the folder.
// The destructor removes the folder with its contents.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Returns `text` with a number before each line, for error messages.
std::string numberLines(const std::string& text);

}  // namespace heddle::codegen
