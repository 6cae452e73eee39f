// heddle-fuzz changes texts at random and passes each one to the reader of fusions or of host
// programs. The texts are the examples, and the host programs to which the fusion examples are
// lowered. With --run, heddle-fuzz also passes each text that the reader accepts to commands of
// heddle. If the reader or a command crashes, takes too long, or throws another exception than
// UserError, heddle-fuzz writes the text to a file, prints the path and ends. With --replay, it
// checks one file instead. With --soak or --write, it runs or writes random fusions instead
// (tools/fuzz/soak.h). In a build with a sanitizer, set abort_on_error=1 in ASAN_OPTIONS and
// UBSAN_OPTIONS, so that errors found by the sanitizer count as crashes.
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "ir/base/check.h"
#include "tools/fuzz/commands.h"
#include "tools/fuzz/mutator.h"
#include "tools/fuzz/soak.h"
#include "tools/fuzz/targets.h"

namespace heddle::fuzz {
namespace {

namespace fs = std::filesystem;

struct Options {
  double seconds = 10;
  uint64_t seed = 1;
  std::string examples = "examples";
  std::string out = "fuzz-failures";
  std::string replay;
  std::string device = "cpu";
  bool soaks = false;
  bool runs = false;
  unsigned limit = 60;
  int64_t count = 0;
  int64_t write = 0;
  std::vector<std::string> without;
};

std::string readFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> filesOf(std::string_view extension, const std::string& folder) {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == extension) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());  // the order of files in a folder depends on the system
  std::vector<std::string> seeds;
  for (const fs::path& path : paths) seeds.push_back(readFile(path));
  return seeds;
}

std::vector<std::string> seedsOf(const Target& target, const std::string& folder) {
  std::vector<std::string> seeds = filesOf(target.extension, folder);
  if (target.more_seeds == nullptr) return seeds;
  for (std::string& seed : target.more_seeds(filesOf(".fusion", folder))) {
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

enum class Outcome : uint8_t { Accepted, Refused, Failed };

struct Verdict {
  Outcome outcome = Outcome::Accepted;
  std::string message;
};

// Checks the text with the reader `target` and, unless `commands` is nullptr, with the commands of
// heddle.
Verdict judge(const Target& target, const std::string& text, Commands* commands) {
  try {
    target.check(text);
    if (commands != nullptr) commands->run(text, std::string(target.extension));
    return {};
  } catch (const UserError& error) {
    return {Outcome::Refused, error.what()};
  } catch (const std::exception& error) {
    return {Outcome::Failed, error.what()};
  }
}

std::string pathOf(const Options& options, const Target& target, std::string_view what) {
  std::string file = fmt::format("{}-{}-{}{}", target.name, options.seed, what, target.extension);
  return (fs::path(options.out) / file).string();
}

// The current text, and the path to which the crash handler writes the text. Both strings are built
// before the crash, so that the crash handler allocates as little memory as possible.
struct Current {
  const std::string* text = nullptr;
  const std::string* path = nullptr;
};
Current current;

extern "C" void onCrash(int signal_number) {
  if (current.text != nullptr) {
    FILE* file = fopen(current.path->c_str(), "wb");
    if (file != nullptr) {
      fwrite(current.text->data(), 1, current.text->size(), file);
      fclose(file);
    }
    fprintf(stderr, "heddle-fuzz: signal %d; input: %s\n", signal_number, current.path->c_str());
  }
  _exit(2);
}

void watchCrashes() {
  // The handler needs its own stack, because it also runs after a stack overflow.
  static char stack[65536];
  stack_t alternative = {};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof stack;
  sigaltstack(&alternative, nullptr);
  struct sigaction action = {};
  action.sa_handler = onCrash;
  action.sa_flags = SA_ONSTACK | static_cast<int>(SA_RESETHAND);
  for (int number : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS, SIGALRM, SIGPROF})
    sigaction(number, &action, nullptr);
}

// Ends the process with a signal after `seconds` of processor time, or after ten times as many
// seconds of real time. The second limit is for a process that waits forever without using the
// processor. It is longer, because other programs may use the machine. If `seconds` is 0, the
// function removes both limits.
void limitTime(unsigned seconds) {
  struct itimerval processor_time = {};
  processor_time.it_value.tv_sec = seconds;
  setitimer(ITIMER_PROF, &processor_time, nullptr);
  alarm(10 * seconds);
}

double processorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Returns the largest resident memory of this process so far, in MiB.
int64_t mostMegabytes() {
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

// Changes texts and checks them until the time is over or a check fails. During a check, `current`
// contains the text, so that the crash handler can write the text to a file.
int fuzz(const Options& options) {
  fs::create_directories(options.out);
  watchCrashes();
  const auto start = std::chrono::steady_clock::now();
  auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  std::vector<std::vector<std::string>> seeds;
  std::vector<std::string> crash_paths;
  for (const Target& target : targets()) {
    crash_paths.push_back(pathOf(options, target, "crash"));
    seeds.push_back(seedsOf(target, options.examples));
    if (seeds.back().empty()) {
      fmt::print(stderr, "heddle-fuzz: no {} files in {}\n", target.extension, options.examples);
      return 1;
    }
  }
  std::optional<Commands> commands;
  if (options.runs) commands.emplace();
  Mutator mutator(options.seed);
  size_t inputs = 0;
  size_t accepted = 0;
  double longest = 0;  // most processor seconds of one input
  while (elapsed() < options.seconds) {
    const size_t which = inputs++ % targets().size();
    const Target& target = targets()[which];
    const std::string text = mutator.mutate(seeds[which]);
    current = {&text, &crash_paths[which]};
    const double before = processorSeconds();
    limitTime(options.limit);
    const Verdict verdict = judge(target, text, commands ? &*commands : nullptr);
    limitTime(0);
    longest = std::max(longest, processorSeconds() - before);
    current = {};
    accepted += verdict.outcome == Outcome::Accepted;
    if (verdict.outcome == Outcome::Failed) {
      const std::string path = pathOf(options, target, fmt::to_string(inputs));
      std::ofstream(path, std::ios::binary) << text;
      fmt::print(stderr, "heddle-fuzz: {}\ninput: {}\n", verdict.message, path);
      return 1;
    }
  }
  fmt::print(
      "heddle-fuzz: {} inputs, {} accepted, seed {}, at most {} MB and {:.2f} s, no failure\n",
      inputs, accepted, options.seed, mostMegabytes(), longest);
  return 0;
}

int replay(const Options& options) {
  const std::string text = readFile(options.replay);
  for (const Target& target : targets()) {
    if (fs::path(options.replay).extension() != target.extension && targets().size() > 1) continue;
    std::optional<Commands> commands;
    if (options.runs) commands.emplace();
    const Verdict verdict = judge(target, text, commands ? &*commands : nullptr);
    fmt::print("{}: {}\n", target.name,
               verdict.outcome == Outcome::Accepted ? "accepted" : verdict.message);
    if (verdict.outcome == Outcome::Failed) return 1;
  }
  return 0;
}

bool isCase(const std::string& path) {
  const fs::path stem = fs::path(path).replace_extension();
  if (fs::path(path).extension() != ".fusion") return false;
  const std::string prefix = stem.filename().string() + ".";
  const fs::path folder = stem.has_parent_path() ? stem.parent_path() : fs::path(".");
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".npy")) return true;
  }
  return false;
}

}  // namespace

int dispatch(const Options& options) {
  SoakOptions soaks;
  soaks.seconds = options.seconds;
  soaks.count = options.write > 0 ? options.write : options.count;
  soaks.seed = options.seed;
  soaks.device = options.device;
  soaks.out = options.out;
  soaks.without = options.without;
  if (options.write > 0) return writeCases(soaks);
  if (options.soaks) return soak(soaks);
  if (options.replay.empty()) return fuzz(options);
  return isCase(options.replay) ? replayCase(options.replay, options.device) : replay(options);
}

}  // namespace heddle::fuzz

int main(int argc, char** argv) {
  heddle::fuzz::Options options;
  CLI::App app(
      "Passes mutated examples to the readers of heddle's text forms; with --soak, runs random\n"
      "fusions on a device and compares them with the reference.");
  app.add_option("--seconds", options.seconds, "Seconds to run")->capture_default_str();
  app.add_option("--seed", options.seed, "Seed; it decides all inputs")->capture_default_str();
  app.add_option("--examples", options.examples, "Folder of the examples to mutate")
      ->capture_default_str();
  app.add_option("--out", options.out, "Folder for failing inputs")->capture_default_str();
  app.add_option("--replay", options.replay,
                 "Check this file instead; run it as a random fusion if its .npy files are in the "
                 "same folder");
  app.add_flag("--soak", options.soaks, "Run random fusions, one per seed");
  app.add_flag("--run", options.runs,
               "Also run the commands verify, dump and run on the texts that the readers accept");
  app.add_option("--limit", options.limit,
                 "Seconds of processor time after which an input counts as a failure")
      ->capture_default_str();
  app.add_option("--device", options.device, "For --soak and --replay: cpu, cuda or none")
      ->capture_default_str();
  app.add_option("--count", options.count, "For --soak: number of fusions; replaces --seconds");
  app.add_option("--write", options.write,
                 "Write this many random fusions with inputs and outputs to --out instead");
  app.add_option("--without", options.without,
                 "What to leave out: kinds of ops (full, iota, index, ...) or wild-casts")
      ->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  try {
    return heddle::fuzz::dispatch(options);
  } catch (const heddle::UserError& error) {
    fmt::print(stderr, "heddle-fuzz: {}\n", error.what());
    return 2;
  }
}
