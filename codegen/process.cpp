#include "codegen/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "ir/error.h"

extern char** environ;

namespace heddle::codegen {
namespace {

std::string readAll(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) return text;
  }
}

int waitFor(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

ProcessResult runProcess(const std::vector<std::string>& command) {
  ProcessResult result;
  int ends[2];
  // Close-on-exec: a child that another thread starts must not hold our pipe open.
  if (pipe2(ends, O_CLOEXEC) != 0) {
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
  int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    result.output = fmt::format("{}: {}", command[0], std::strerror(error));
  } else {
    result.started = true;
    result.output = readAll(ends[0]);
    result.exit_code = waitFor(pid);
  }
  close(ends[0]);
  return result;
}

TempFolder::TempFolder() {
  const char* base = std::getenv("TMPDIR");
  path_ = fmt::format("{}/heddle-XXXXXX", base != nullptr && *base != 0 ? base : "/tmp");
  HEDDLE_USER_CHECK(mkdtemp(path_.data()) != nullptr, "mkdtemp({}): {}", path_,
                    std::strerror(errno));
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
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
