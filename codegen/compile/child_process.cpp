#include "codegen/compile/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "ir/base/check.h"

extern char** environ;

namespace heddle::codegen {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr size_t kMostOutput = size_t{1} << 20;

// The child processes that endChildProcesses() must end, and the folders that it must remove.
struct Outliving {
  std::mutex mutex;
  bool ended = false;  // endChildProcesses() was called
  std::set<pid_t> children;
  std::set<std::string> folders;
};

// Never destroyed, because threads may still use the object while the process exits.
Outliving& outliving() {
  static Outliving* const one = new Outliving;
  return *one;
}

// Waits for the end of a child process and returns its exit code (ProcessResult::exit_code). First
// removes the pid from the list of children, and only then reaps the process. The system may give
// the pid of a reaped process to another program, which endChildProcesses() must not end.
int waitFor(pid_t pid) {
  siginfo_t ended;
  while (waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  std::lock_guard lock(outliving().mutex);
  outliving().children.erase(pid);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Returns whether a child process has ended. Does not reap it.
bool hasEnded(pid_t pid) {
  siginfo_t ended{};
  const int error = waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT | WNOHANG);
  if (error != 0) return errno != EINTR;  // after an error, waitFor() returns -1
  return ended.si_pid == pid;
}

// Waits for the end of a child process without reaping it. Returns false if the process still runs
// at `end`.
bool endsBefore(pid_t pid, SteadyClock::time_point end) {
  constexpr auto kPollingInterval = std::chrono::milliseconds(1);
  while (!hasEnded(pid)) {
    if (SteadyClock::now() >= end) return false;
    std::this_thread::sleep_for(kPollingInterval);
  }
  return true;
}

// Reads the output of a child process, and keeps the first kMostOutput bytes. Stops when all
// writers have closed the pipe, when reading fails, or when the process has ended and the pipe is
// empty. The reason for the last case: a process in the background, which the child has started,
// may keep the pipe open. Returns false if none of this has happened before `end`.
bool readUntil(int pipe, pid_t pid, SteadyClock::time_point end, std::string& text) {
  constexpr int kPollingMilliseconds = 50;
  char buffer[4096];
  while (SteadyClock::now() < end) {
    const bool ended = hasEnded(pid);
    pollfd readable{pipe, POLLIN, 0};
    if (poll(&readable, 1, ended ? 0 : kPollingMilliseconds) <= 0) {
      if (ended) return true;
      continue;
    }
    const ssize_t got = read(pipe, buffer, sizeof(buffer));
    if (got == 0 || (got < 0 && errno != EINTR)) return true;
    if (got > 0) text.append(buffer, std::min(static_cast<size_t>(got), kMostOutput - text.size()));
  }
  return false;
}

struct RunningProcess {
  pid_t pid = 0;
  pid_t parent = 0;
};

// Returns all running processes that /proc lists. The content of /proc/PID/stat is: PID (NAME)
// STATE PARENT ...
std::vector<RunningProcess> runningProcesses() {
  std::vector<RunningProcess> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    RunningProcess process{std::atoi(entry.path().filename().c_str())};
    if (process.pid == 0) continue;
    std::string line;
    std::getline(std::ifstream(entry.path() / "stat"), line);
    const size_t name_end = line.rfind(')');
    char state = 0;
    if (name_end == std::string::npos) continue;
    if (std::sscanf(line.c_str() + name_end + 1, " %c %d", &state, &process.parent) != 2) continue;
    if (state != 'Z' && state != 'X') found.push_back(process);
  }
  return found;
}

// Stops the processes `all` and their descendants, and returns all stopped processes. Each process
// is stopped before its children are listed, because a running process could start more children.
std::vector<pid_t> stopWithDescendants(std::vector<pid_t> all) {
  const auto listed = [&](pid_t pid) {
    return std::find(all.begin(), all.end(), pid) != all.end();
  };
  for (size_t stopped = 0; stopped < all.size();) {
    for (; stopped < all.size(); ++stopped) kill(all[stopped], SIGSTOP);
    for (const RunningProcess& process : runningProcesses()) {
      if (listed(process.parent) && !listed(process.pid)) all.push_back(process.pid);
    }
  }
  return all;
}

// Sends SIGTERM to stopped processes and lets them continue, so that a compiler can remove its
// temporary files. Kills the processes that still run after 0.2 s.
void endAll(const std::vector<pid_t>& all) {
  constexpr int kPolls = 20;
  constexpr auto kPollingInterval = std::chrono::milliseconds(10);
  for (pid_t pid : all) kill(pid, SIGTERM);
  for (pid_t pid : all) kill(pid, SIGCONT);
  std::vector<pid_t> left = all;
  for (int poll = 0; poll < kPolls && !left.empty(); ++poll) {
    std::this_thread::sleep_for(kPollingInterval);
    std::vector<pid_t> still;
    for (const RunningProcess& process : runningProcesses()) {
      if (std::find(left.begin(), left.end(), process.pid) != left.end())
        still.push_back(process.pid);
    }
    left = std::move(still);
  }
  for (pid_t pid : left) kill(pid, SIGKILL);
}

// Starts a program and adds it to the list of children, under one lock. endChildProcesses() can
// therefore miss no child. Returns 0, or an errno: ECANCELED after endChildProcesses().
int spawnListed(pid_t& pid, const posix_spawn_file_actions_t& actions, char** argv) {
  std::lock_guard lock(outliving().mutex);
  if (outliving().ended) return ECANCELED;
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv, environ);
  if (error == 0) outliving().children.insert(pid);
  return error;
}

constexpr std::string_view kFolderPrefix = "heddle-work-";

// Throws UserError if a user other than root could replace the entries of this user in the folder.
void checkTemporaryBase(const std::string& base) {
  struct stat status {};
  HEDDLE_USER_CHECK(stat(base.c_str(), &status) == 0, "{}: {}", base, std::strerror(errno));
  HEDDLE_USER_CHECK(status.st_uid == 0 || status.st_uid == geteuid(),
                    "{} belongs to another user, who can replace its entries", base);
  const bool is_shared = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  HEDDLE_USER_CHECK(!is_shared || (status.st_mode & S_ISVTX) != 0,
                    "other users can replace the entries of {}: its mode {:04o} lacks the sticky "
                    "bit",
                    base, status.st_mode & 07777);
}

}  // namespace

ProcessResult runProcess(const std::vector<std::string>& command, std::chrono::milliseconds limit) {
  ProcessResult result;
  int ends[2];
  // O_CLOEXEC: a child that another thread starts must not keep this pipe open.
  if (pipe2(ends, O_CLOEXEC) != 0) {
    result.start_error = errno;
    result.output = fmt::format("pipe2: {}", std::strerror(errno));
    return result;
  }
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  pid_t pid = 0;
  const int error = spawnListed(pid, actions, argv.data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    result.start_error = error;
    result.output = fmt::format("{}: {}", command[0], std::strerror(error));
  } else {
    result.started = true;
    const SteadyClock::time_point end = SteadyClock::now() + limit;
    // A program may close its output and continue to run.
    result.timed_out = !readUntil(ends[0], pid, end, result.output) || !endsBefore(pid, end);
    if (result.timed_out) endAll(stopWithDescendants({pid}));
    result.exit_code = waitFor(pid);
  }
  close(ends[0]);
  return result;
}

void endChildProcesses() noexcept {
  Outliving& all = outliving();
  std::lock_guard lock(all.mutex);
  all.ended = true;
  try {
    if (!all.children.empty())
      endAll(stopWithDescendants({all.children.begin(), all.children.end()}));
    std::error_code ignored;
    for (const std::string& folder : all.folders) std::filesystem::remove_all(folder, ignored);
  } catch (const std::exception&) {
    // This process is probably out of memory. The function ignores this, so that the process can
    // exit. Some programs and folders may then remain.
  }
}

TempFolder::TempFolder() {
  const char* variable = std::getenv("TMPDIR");
  const std::string base = variable != nullptr && *variable != 0 ? variable : "/tmp";
  static std::once_flag cleaned;
  std::call_once(cleaned, [&] { removeUnlockedFolders(base, kFolderPrefix); });
  std::lock_guard lock(outliving().mutex);
  HEDDLE_USER_CHECK(!outliving().ended,
                    "cannot create a temporary folder: this process is exiting");
  try {
    checkTemporaryBase(base);
    folder_ = createLockedFolder(base, kFolderPrefix);
  } catch (const UserError& error) {
    userErrorWith(error.code(), "cannot create a temporary folder (set TMPDIR): {}", error.what());
  }
  outliving().folders.insert(folder_.path);
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_.path, ignored);
  std::lock_guard lock(outliving().mutex);
  outliving().folders.erase(folder_.path);
}

std::string numberLines(const std::string& text) {
  std::string numbered;
  size_t begin = 0;
  for (int line = 1; begin < text.size(); ++line) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    numbered += fmt::format("{:5} | {}\n", line, text.substr(begin, end - begin));
    begin = end + 1;
  }
  return numbered;
}

}  // namespace heddle::codegen
