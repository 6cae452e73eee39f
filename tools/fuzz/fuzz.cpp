// heddle-fuzz changes the text of the examples at random and passes it to every reader of text. If
// a reader crashes or throws another exception than UserError, heddle-fuzz writes the input to a
// file and prints its path. In a build with a sanitizer, set abort_on_error=1 in ASAN_OPTIONS and
// UBSAN_OPTIONS, so that errors found by the sanitizer count as crashes.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/error.h"
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

// Words that are inserted into the text. They change its meaning more often than random bytes do.
constexpr std::string_view kWords[] = {"%",
                                       "(",
                                       ")",
                                       "[",
                                       "]",
                                       "{",
                                       "}",
                                       "shard(@m, 0: x)",
                                       "-",
                                       "0",
                                       "1",
                                       "-1",
                                       "/",
                                       "ceildiv(",
                                       "t",
                                       "f32[",
                                       "bf16",
                                       "i64",
                                       "nan",
                                       "inf",
                                       "1e308",
                                       "stream(0: 4)",
                                       "\"",
                                       "return",
                                       "sum",
                                       "where",
                                       "reshape",
                                       "broadcast(1)",
                                       "permute",
                                       "slice",
                                       "matmul",
                                       "partial(sum: x)",
                                       "axes=[0]",
                                       "sizes=[t]",
                                       "9223372036854775807",
                                       "99999999999999999999",
                                       "ranks",
                                       "\\x",
                                       "stride_order=[1, 0]",
                                       "order=[0]",
                                       "inferred",
                                       "keepdim=true",
                                       "slot",
                                       "alias",
                                       "wait",
                                       "$t = ",
                                       "!e",
                                       "stream=1",
                                       "team=@m[x]",
                                       "for i in 0 .. 3 {",
                                       "if rank == 0 {",
                                       "on @m: ",
                                       "group_begin",
                                       "free",
                                       "..",
                                       ",",
                                       "=",
                                       ":",
                                       "@m",
                                       "#",
                                       "\n"};

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string mutate(const std::vector<std::string>& seeds) {
    std::string text = pick(seeds);
    for (size_t n = below(6) + 1; n > 0; --n) once(text, seeds);
    return text;
  }

 private:
  size_t below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  const std::string& pick(const std::vector<std::string>& list) { return list[below(list.size())]; }

  // Returns the begin and the length of a token at a random position. A token is a sequence of word
  // characters, or one other byte.
  std::pair<size_t, size_t> token(const std::string& text) {
    auto isWord = [&](size_t i) { return std::isalnum(static_cast<unsigned char>(text[i])) != 0; };
    size_t begin = below(text.size());
    size_t end = begin;
    while (begin > 0 && isWord(begin - 1) && isWord(begin)) --begin;
    while (end < text.size() && isWord(end)) ++end;
    return {begin, std::max<size_t>(end - begin, 1)};
  }

  std::pair<size_t, size_t> line(const std::string& text) {
    size_t begin = text.rfind('\n', below(text.size()));
    begin = begin == std::string::npos ? 0 : begin + 1;
    size_t end = text.find('\n', begin);
    return {begin, (end == std::string::npos ? text.size() : end + 1) - begin};
  }

  void once(std::string& text, const std::vector<std::string>& seeds) {
    if (text.empty()) text = pick(seeds);
    const auto [at, length] = token(text);
    const auto [line_at, line_length] = line(text);
    switch (below(10)) {
      case 0:
        text[below(text.size())] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3: {  // replace a token by another one
        const auto [from, size] = token(text);
        text.replace(at, length, text.substr(from, size));
        break;
      }
      case 4:
        text.replace(at, length, kWords[below(std::size(kWords))]);
        break;
      case 5:
        text.insert(at, kWords[below(std::size(kWords))]);
        break;
      case 6:
        text.erase(line_at, line_length);
        break;
      case 7:
        text.insert(line_at, text.substr(line_at, line_length));
        break;
      case 8: {  // insert a line of another example
        const std::string& other = pick(seeds);
        const auto [from, size] = line(other);
        text.insert(line_at, other.substr(from, size));
        break;
      }
      default: {  // repeat the same bytes many times: deep nesting, long lists
        std::string run;
        for (size_t n = below(2000); n > 0 && run.size() < 8000; --n)
          run += text.substr(at, length);
        text.insert(at, run);
      }
    }
  }

  std::mt19937_64 random_;
};

enum class Outcome : uint8_t { Accepted, Refused, Failed };

struct Verdict {
  Outcome outcome = Outcome::Accepted;
  std::string message;
};

Verdict judge(const Target& target, const std::string& text) {
  try {
    target.check(text);
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

// The current input, and the path to which the crash handler writes it. A signal handler must not
// allocate memory.
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
  for (int number : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS}) sigaction(number, &action, nullptr);
}

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
  Mutator mutator(options.seed);
  size_t inputs = 0;
  size_t accepted = 0;
  while (elapsed() < options.seconds) {
    const size_t which = inputs++ % targets().size();
    const Target& target = targets()[which];
    const std::string text = mutator.mutate(seeds[which]);
    current = {&text, &crash_paths[which]};
    const Verdict verdict = judge(target, text);
    current = {};
    accepted += verdict.outcome == Outcome::Accepted;
    if (verdict.outcome == Outcome::Failed) {
      const std::string path = pathOf(options, target, fmt::to_string(inputs));
      std::ofstream(path, std::ios::binary) << text;
      fmt::print(stderr, "heddle-fuzz: {}\ninput: {}\n", verdict.message, path);
      return 1;
    }
  }
  fmt::print("heddle-fuzz: {} inputs, {} accepted, seed {}, no failure\n", inputs, accepted,
             options.seed);
  return 0;
}

int replay(const Options& options) {
  const std::string text = readFile(options.replay);
  for (const Target& target : targets()) {
    if (fs::path(options.replay).extension() != target.extension && targets().size() > 1) continue;
    const Verdict verdict = judge(target, text);
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
  app.add_option(
      "--replay", options.replay,
      "Check this file instead; a .fusion file with .npy files in the same folder is run");
  app.add_flag("--soak", options.soaks, "Run random fusions, one per seed");
  app.add_option("--device", options.device, "For --soak and --replay: cpu, cuda or none")
      ->capture_default_str();
  app.add_option("--count", options.count, "For --soak: number of fusions; replaces --seconds");
  app.add_option("--write", options.write,
                 "Write this many random fusions with inputs and outputs to --out instead");
  app.add_option("--without", options.without, "Kinds of ops to leave out: full, iota, index, ...")
      ->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  try {
    return heddle::fuzz::dispatch(options);
  } catch (const heddle::UserError& error) {
    fmt::print(stderr, "heddle-fuzz: {}\n", error.what());
    return 2;
  }
}
