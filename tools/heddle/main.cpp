#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>

#include "codegen/compile/child_process.h"
#include "ir/base/check.h"
#include "tools/arguments/arguments.h"
#include "tools/bench/bench.h"
#include "tools/heddle/job.h"
#include "tools/heddle/job_end.h"
#include "tools/heddle/options.h"
#include "tools/tune/tune_command.h"

namespace heddle::tools {
namespace {

void addOthers(CLI::App& app, Options& o) {
  CLI::App* bench = app.add_subcommand("bench", "Measures each instruction of a program.");
  addSource(*bench, o);
  addPassChecks(*bench, o);
  addInputs(*bench, o);
  addBench(*bench, o);
  addTune(app, o);
  CLI::App* verify = app.add_subcommand("verify", "Checks a file without running it.");
  verify->footer("Example:\n  heddle verify examples/ring_allgather.hostir");
  addFile(*verify, o);
  CLI::App* devices = app.add_subcommand("devices", "Lists devices and transports.");
  devices->footer("Example:\n  heddle devices");
  CLI::App* ops = app.add_subcommand("ops", "Lists the ops that a fusion may call, one per line.");
  ops->footer("Example:\n  heddle ops | grep library");
  ops->add_flag("--markdown", o.markdown, "print the text of docs/ops.md, which has notes");
}

int dispatch(const CLI::App& app, Options options) {
  if (app.got_subcommand("run")) return runCommand(options);
  // Only `run` communicates. Under mpirun, only rank 0 executes the other commands.
  if (const std::optional<ProcessRank> process = processRank()) {
    if (process->rank != 0) return 0;
    if (options.ranks == 0) options.ranks = process->ranks;
  }
  if (app.got_subcommand("ops")) return opsCommand(options);
  if (app.got_subcommand("devices")) return devicesCommand(options);
  catchEndSignal(false);
  // readSource() sets another task while it reads the file.
  setProcessTask(comm::RankTask::CompilingProgram);
  if (app.got_subcommand("bench")) return benchCommand(options);
  if (app.got_subcommand("tune")) return tuneCommand(options);
  return app.got_subcommand("dump") ? dumpCommand(options) : verifyCommand(options);
}

std::string faultOf(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  if (!app.get_subcommands().empty()) {
    const std::string command = app.get_subcommands().front()->get_name();
    return fmt::format("{} (see heddle {} --help)", error.what(), command);
  }
  return fmt::format("expected a subcommand, run, bench, tune, dump, verify, devices or ops{}",
                     argc > 1 ? fmt::format(", found {}", argv[1]) : " (see --help)");
}

// Prints the help text or a fault of the command line, and returns the exit code. Under mpirun,
// most faults occur on all ranks, but only one message is wanted. Rank 0 therefore prints at once
// and exits, which makes mpirun end the other ranks while they sleep.
int refuse(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const std::optional<ProcessRank> process = processRank();
  const bool waits = process && process->rank != 0;
  if (error.get_exit_code() == 0) return waits ? 0 : app.exit(error);
  std::string fault = faultOf(app, error, argc, argv);
  if (waits) {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    fault = fmt::format("rank {}: {}", process->rank, fault);
  }
  say(fault);
  return 2;
}

int fail(const std::string& reason, int code) {
  say(reason);
  return code;
}

// OpenBLAS starts its threads when it is loaded, before main(). If this fails, OpenBLAS prints the
// reason and raises SIGINT. For such a signal, this handler prints a message and exits with code 2.
// For a SIGINT from elsewhere, the handler exits with the usual code of a signal.
void onBlasFailure(int signal, siginfo_t* info, void*) {
  if (info->si_code == SI_TKILL && info->si_pid == getpid()) {
    constexpr std::string_view kText =
        "heddle: cannot start the threads of OpenBLAS; the limits of processes (ulimit -u) or of "
        "memory are too small\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText.data(), kText.size());
    _exit(2);
  }
  _exit(128 + signal);
}

struct sigaction former_action = {};
bool catches_interrupt = false;

[[maybe_unused]] void catchBlasFailure() {
  struct sigaction action = {};
  action.sa_sigaction = onBlasFailure;
  action.sa_flags = SA_SIGINFO;
  catches_interrupt = sigaction(SIGINT, &action, &former_action) == 0;
}

// The loader calls the functions in .preinit_array before it initialises the libraries. The
// sanitizers are not ready at that time.
#if !defined(HEDDLE_SANITIZED) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((section(".preinit_array"),
               used)) void (*const before_libraries)() = catchBlasFailure;
#endif

void restoreInterrupt() {
  if (catches_interrupt) sigaction(SIGINT, &former_action, nullptr);
}

// Opens /dev/null for each of standard input, output and error that is closed. Otherwise the next
// opened file would get the number of the closed one, and heddle would write its output into this
// file.
void holdStandardFiles() {
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file) {
    if (fcntl(file, F_GETFD) < 0) open("/dev/null", O_RDONLY);
  }
}

// Ends the process without the destructors of libraries. If memory is short, threads of OpenBLAS
// try to allocate memory for ever, and the destructor of OpenBLAS would wait for these threads.
[[noreturn]] void endWith(int code) {
  std::fflush(stdout);
  codegen::endChildProcesses();  // removes temporary folders
  std::_Exit(code);
}

// Returns whether a successful process may skip destructors. A process of an MPI job needs the
// destructor that calls MPI_Finalize. The leak sanitizer looks for leaks when a process returns.
bool mayEndAtOnce() {
#ifdef HEDDLE_SANITIZED
  return false;
#else
  return !processRank();
#endif
}

// true: this thread is throwing bad_alloc. The exception itself needs memory too. If there is no
// memory left, the C++ runtime calls onUncaughtException() instead.
thread_local bool is_throwing_bad_alloc = false;

// operator new calls this function if the system gives no memory.
[[noreturn]] void onShortMemory() {
  is_throwing_bad_alloc = true;
  try {
    throw std::bad_alloc();
  } catch (const std::bad_alloc&) {
    is_throwing_bad_alloc = false;
    throw;
  }
}

// Lets only the first thread continue, so that the process prints one message. If this thread then
// waits for a lock that another thread holds for ever, an alarm ends the process.
void claimTheEnd() {
  static std::atomic<bool> claimed = false;
  if (claimed.exchange(true)) {
    for (;;) pause();
  }
  constexpr unsigned kMostSeconds = 3;
  signal(SIGALRM, [](int) { _exit(2); });
  alarm(kMostSeconds);
}

// std::terminate() calls this function if an exception leaves a thread or a function that must not
// throw. Too little memory and too few threads are faults of the caller, so they end the process
// with 2. All other exceptions are bugs, and abort the process.
[[noreturn]] void onUncaughtException() {
  claimTheEnd();
  if (const std::exception_ptr error = std::current_exception()) {
    try {
      std::rethrow_exception(error);
    } catch (const std::bad_alloc&) {
      std::fputs("heddle: out of memory\n", stderr);
      endWith(2);
    } catch (const std::system_error& e) {
      std::fprintf(stderr, "heddle: %s\n", e.what());
      endWith(2);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "heddle: uncaught exception: %s\n", e.what());
    }
  } else if (is_throwing_bad_alloc) {
    std::fputs("heddle: out of memory\n", stderr);
    endWith(2);
  }
  std::abort();
}

// Returns `code`, or 2 with a message if the output could not be written.
int withWrittenOutput(int code) {
  std::cout.flush();
  const bool failed = std::cout.fail();
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && !failed) return code;
  // If an earlier write has failed, its error code is lost. Another write usually fails for the
  // same reason and gives the code.
  const bool again = errno != 0 || write(STDOUT_FILENO, "\n", 1) < 0;
  return fail(fmt::format("cannot write the output: {}",
                          again ? std::strerror(errno) : "an earlier write failed"),
              2);
}

int runCommandLine(int argc, char** argv) {
  Options options;
  CLI::App app(
      "heddle: runs fused tensor programs on one or many devices.\n"
      "Exit codes: 0 success; 1 --check found a wrong element, --check-numerics found NaN or "
      "infinity, or copies of an output differ between ranks; 2 a fault of the caller, or a lost "
      "rank; 3 a bug in heddle.");
  app.require_subcommand(1);
  addRun(app, options);
  addDump(app, options);
  addOthers(app, options);
  try {
    app.parse(argc, argv);
    return withWrittenOutput(dispatch(app, options));
  } catch (const CLI::ParseError& error) {
    return withWrittenOutput(refuse(app, error, argc, argv));
  } catch (const AlreadySaid&) {
    return 2;
  } catch (const UserError& error) {
    return fail(error.what(), 2);
  } catch (const std::bad_alloc&) {
    return fail("out of memory", 2);
  } catch (const std::system_error& error) {
    return fail(error.what(), 2);  // for example, no more threads
  } catch (const std::exception& error) {
    return fail(error.what(), 3);
  }
}

}  // namespace
}  // namespace heddle::tools

int main(int argc, char** argv) {
  heddle::tools::restoreInterrupt();
  // A write beyond the limit of the file size (ulimit -f) then fails with an error instead of a
  // signal.
  signal(SIGXFSZ, SIG_IGN);
  std::set_new_handler(heddle::tools::onShortMemory);
  std::set_terminate(heddle::tools::onUncaughtException);
  heddle::tools::holdStandardFiles();
  const int code = heddle::tools::runCommandLine(argc, argv);
  if (code != 0 || heddle::tools::mayEndAtOnce()) heddle::tools::endWith(code);
  return 0;
}
