#include "codegen/compile/compiler_limits.h"

#include <sys/resource.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "ir/base/check.h"
#include "ir/system/start_thread.h"

namespace heddle::codegen {
namespace {

constexpr int kProcesses = 3;  // processes of one compiler at the same time

std::mutex compilers_mutex;
std::condition_variable compiler_ended;
int running_compilers = 0;

// Throws UserError if the system cannot start `processes` more threads. The same limit applies to
// threads and processes.
void checkProcessLimit(int processes) {
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  std::vector<std::thread> threads;
  // Reserves memory, so that push_back() cannot fail. A failure would destroy a std::thread that
  // still runs, which ends the process.
  threads.reserve(processes);
  const auto endAll = [&] {
    end.set_value();
    for (std::thread& thread : threads) thread.join();
  };
  try {
    for (int i = 0; i < processes; ++i) {
      threads.push_back(startThread("the C++ compiler", [ended] { ended.wait(); }));
    }
  } catch (...) {
    endAll();
    throw;
  }
  endAll();
}

struct Limit {
  __rlimit_resource resource;
  rlim_t enough;  // a smaller limit is reported as the reason of a failure
  const char* what;
  const char* option;  // option of the command ulimit
};
constexpr Limit kLimits[] = {
    {RLIMIT_NOFILE, 64, "open files", "-n"},
    {RLIMIT_FSIZE, rlim_t{1} << 26, "bytes of a file", "-f"},
    {RLIMIT_AS, rlim_t{1} << 30, "bytes of address space", "-v"},
    {RLIMIT_DATA, rlim_t{1} << 30, "bytes of data", "-d"},
    {RLIMIT_CPU, 60, "seconds of processor time", "-t"},
};

void checkLimits(const ProcessResult& result, const std::string& program) {
  for (const Limit& limit : kLimits) {
    struct rlimit now {};
    if (getrlimit(limit.resource, &now) != 0) continue;
    HEDDLE_USER_CHECK_CODE(CompileFailure, now.rlim_cur >= limit.enough,
                           "the C++ compiler {} failed, and may use only {} {} (ulimit {}); allow "
                           "{}; it said:\n{}",
                           program, now.rlim_cur, limit.what, limit.option, limit.enough,
                           result.output);
  }
}

}  // namespace

std::chrono::milliseconds compilerTimeLimit() {
  constexpr double kDefaultSeconds = 600;
  constexpr double kLongestSeconds = 1e6;
  const char* variable = std::getenv("HEDDLE_CXX_TIMEOUT");
  if (variable == nullptr || *variable == 0) {
    return std::chrono::milliseconds(static_cast<int64_t>(1e3 * kDefaultSeconds));
  }
  const std::string_view text = variable;
  double seconds = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  HEDDLE_USER_CHECK(error == std::errc() && rest == text.data() + text.size() && seconds > 0 &&
                        seconds <= kLongestSeconds,
                    "HEDDLE_CXX_TIMEOUT={}: expected a number of seconds above 0, at most {:.0f}",
                    text, kLongestSeconds);
  return std::chrono::milliseconds(static_cast<int64_t>(1e3 * seconds));
}

RunningCompiler::RunningCompiler() {
  std::unique_lock lock(compilers_mutex);
  for (;;) {
    try {
      // All running compilers count, because they may not have started all of their processes yet.
      checkProcessLimit(kProcesses * (running_compilers + 1));
      break;
    } catch (const UserError&) {
      if (running_compilers == 0) throw;
    }
    const int before = running_compilers;
    compiler_ended.wait(lock, [&] { return running_compilers < before; });
  }
  ++running_compilers;
}

RunningCompiler::~RunningCompiler() {
  {
    std::lock_guard lock(compilers_mutex);
    --running_compilers;
  }
  compiler_ended.notify_all();
}

void checkMachine(const ProcessResult& result, const std::string& program,
                  const std::string& folder) {
  HEDDLE_USER_CHECK_CODE(CompileFailure,
                         result.started || result.start_error == ENOENT ||
                             result.start_error == EACCES || result.start_error == ENOEXEC,
                         "cannot start the C++ compiler {}: {}", program, result.output);
  HEDDLE_USER_CHECK_CODE(
      CompileFailure, !result.timed_out,
      "the C++ compiler {} was ended after {} s (HEDDLE_CXX_TIMEOUT changes this "
      "limit); it said:\n{}",
      program, static_cast<double>(compilerTimeLimit().count()) / 1e3, result.output);
  if (!result.started || result.exit_code == 0) return;
  checkLimits(result, program);
  constexpr uint64_t kLeastBytes = uint64_t{1} << 20;
  struct statvfs disk {};
  if (statvfs(folder.c_str(), &disk) != 0) return;
  const uint64_t free = uint64_t{disk.f_bavail} * disk.f_frsize;
  HEDDLE_USER_CHECK_CODE(
      CompileFailure, free >= kLeastBytes,
      "the C++ compiler {} failed, and the disk of {} has only {} free bytes; set "
      "TMPDIR to a folder with more space; it said:\n{}",
      program, folder, free, result.output);
}

}  // namespace heddle::codegen
