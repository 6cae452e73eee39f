#pragma once

#include <string>
#include <vector>

namespace heddle::codegen {

struct ProcessResult {
  bool started = false;
  int exit_code = -1;  // 128 + signal when it was killed
  std::string output;  // stdout and stderr in the order they came
};

// Runs a program (looked up on PATH) with no shell between and waits for it. Thread-safe.
ProcessResult runProcess(const std::vector<std::string>& command);

// For a process that is about to _exit, while other threads may be in runProcess: ends the programs
// there and all they have started, and removes every TempFolder. It can have neither from here on.
// Takes 0.2 s where a program does not heed SIGTERM. Thread-safe.
void endChildProcesses() noexcept;

// A fresh folder only this user may enter, removed with all it holds. UserError when none can be
// made under $TMPDIR (else /tmp).
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

// `text` with a number before each line, for error messages.
std::string numberLines(const std::string& text);

}  // namespace heddle::codegen
