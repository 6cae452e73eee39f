#include "codegen/compile/cpp_compiler.h"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include "codegen/compile/child_process.h"
#include "codegen/compile/compiler_limits.h"
#include "codegen/compile/load_library.h"
#include "codegen/compile/runtime_text.h"
#include "ir/base/check.h"
#include "ir/system/files.h"

namespace heddle::codegen {
namespace {

// Reasons for some flags:
// - -fno-math-errno, -fno-trapping-math: the compiler vectorizes more loops. The flags change no
//   value.
// - -fwrapv: overflow of integers wraps, as in PyTorch.
// - -ffp-contract=off: the compiler creates no fused multiply-add. The result of a multiplication
//   and an addition must not depend on whether the two ops are in the same kernel.
// - -mprefer-vector-width=512: by default GCC uses vectors of 32 bytes on Intel CPUs with AVX-512,
//   but the functions of libmvec (codegen/runtime/cpu_math.h) are faster with 64 bytes.
const std::vector<std::string> kFlags = {
    "-std=c++17",
    "-O3",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fwrapv",
    "-fPIC",
    "-shared",
    "-w",
#ifdef __x86_64__
    "-mprefer-vector-width=512",
#endif
};

// More options, in several variants. heddle uses the first variant with which the compiler works.
const std::vector<std::vector<std::string>> kVariants = {
    // GCC with libmvec. Two options save a tenth of the compile time:
    // - -fno-version-loops-for-strides: the text of a kernel already says which strides are 1.
    // - -nostdlib: kernels need no C++ library, so the linker does not have to read it.
    {"-fno-version-loops-for-strides", "-nostdlib", "-lmvec", "-lm", "-lc", "-lgcc"},
    {"-lmvec", "-lm"},
    // Without libmvec, GNU's library of vectorized math functions.
    {"-DHD_NO_LIBMVEC", "-lm"},
};

// The largest number of kernels in one run of the compiler. Each run has a fixed cost. For example,
// with GCC 12, 10 kernels take 1.9 s of CPU time in ten runs, and 1.1 s in one run. If cores are
// idle, several runs at the same time are still faster. ImageCache (codegen/compile/image_cache.h)
// then compiles smaller groups.
constexpr size_t kMostAtOnce = 16;

constexpr int64_t kLargestOutput = int64_t{1} << 28;

std::vector<std::byte> readImage(const std::string& path, const std::string& program) {
  std::error_code error;
  HEDDLE_USER_CHECK_CODE(CompileFailure, std::filesystem::exists(path, error),
                         "the C++ compiler {} reported success, but wrote no kernel to {}", program,
                         path);
  const RegularFile file = openRegularFile(path);
  HEDDLE_USER_CHECK_CODE(CompileFailure, file.bytes > 0 && file.bytes <= kLargestOutput,
                         "the C++ compiler {} reported success, but wrote {} bytes to {}", program,
                         file.bytes, path);
  std::vector<std::byte> image(file.bytes);
  readExactly(file, image.data(), file.bytes, path);
  return image;
}

// A compiler that works with `options`.
struct FoundCompiler {
  std::string program;
  std::string identity;
  std::vector<std::string> options;  // one of kVariants
};

std::vector<std::string> compileCommand(const std::string& program,
                                        const std::vector<std::string>& options,
                                        const std::string& in, const std::string& out) {
  std::vector<std::string> command = {program};
  command.insert(command.end(), kFlags.begin(), kFlags.end());
  command.insert(command.end(), {in, "-o", out});
  command.insert(command.end(), options.begin(), options.end());
  return command;
}

class CppCompiler : public KernelCompiler {
 public:
  explicit CppCompiler(FoundCompiler found) : found_(std::move(found)) {}

  Target target() const override { return Target::Cpp; }
  std::string identity() const override { return found_.identity; }
  size_t mostAtOnce() const override { return kMostAtOnce; }

  std::vector<std::byte> compile(const KernelSource& source) const override {
    TempFolder folder;
    std::string text = runtimeHeader(Target::Cpp) + source.text;
    std::string in = folder.path() + "/kernel.cpp";
    std::string out = folder.path() + "/kernel.so";
    writeFileOf(in, {text});
    const std::string& program = found_.program;
    const RunningCompiler running;
    ProcessResult result =
        runProcess(compileCommand(program, found_.options, in, out), compilerTimeLimit());
    checkMachine(result, program, folder.path());
    HEDDLE_USER_CHECK_CODE(CompileFailure, result.started && result.exit_code == 0,
                           "{} failed with exit code {} on a kernel:\n{}\n{}", program,
                           result.exit_code, result.output, numberLines(text));
    return readImage(out, program);
  }

 private:
  FoundCompiler found_;
};

// Returns whether the compiler, with kFlags and these options, creates a shared object that this
// process can load. If not, appends the reason to `why`.
bool works(const std::string& program, const std::vector<std::string>& options, std::string& why) {
  TempFolder folder;
  const std::string in = folder.path() + "/probe.cpp";
  const std::string out = folder.path() + "/probe.so";
  writeFileOf(in, {"extern \"C\" void heddle_probe() {}\n"});
  const RunningCompiler running;
  ProcessResult result = runProcess(compileCommand(program, options, in, out), compilerTimeLimit());
  checkMachine(result, program, folder.path());
  if (!result.started) {
    why += result.output + "\n";
    return false;
  }
  if (result.exit_code != 0) {
    why += fmt::format("{}: exit code {}: {}\n", program, result.exit_code, result.output);
    return false;
  }
  try {
    const auto library = loadLibrary(readImage(out, program));
    if (findEntry(library, "heddle_probe") != nullptr) return true;
    why += fmt::format("{}: its image has no function heddle_probe\n", program);
  } catch (const UserError& error) {
    why += fmt::format("{}: {}\n", program, error.what());
  }
  return false;
}

// Returns a text with the name of the compiler, its version, its flags and its predefined macros.
// With -march=native, the macros name every CPU feature that the compiler uses on this machine.
std::string identify(const std::string& program, const std::vector<std::string>& options) {
  const ProcessResult version = runProcess({program, "--version"}, compilerTimeLimit());
  const ProcessResult macros =
      runProcess({program, "-march=native", "-O3", "-dM", "-E", "-x", "c++", "/dev/null"},
                 compilerTimeLimit());
  // Without the version or the macros, the cache could return images of another compiler or for
  // another CPU.
  for (const ProcessResult* result : {&version, &macros}) {
    HEDDLE_USER_CHECK_CODE(
        CompileFailure, result->started && !result->timed_out && result->exit_code == 0,
        "the C++ compiler {} does not report its version: {}", program, result->output);
  }
  std::string text = fmt::format("{}\n{}\n", program, version.output);
  for (const std::string& flag : compileCommand("", options, "", "")) text += flag + " ";
  return text + "\n" + macros.output;
}

// Returns the value of an environment variable, or "" if it is not set.
std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Tries the compilers one after another, each with the variants in order, and returns the first
// pair that works. For each compiler that does not work, appends to `why` why the last variant
// fails, which is the simplest one.
std::optional<FoundCompiler> findCompiler(const std::string& chosen, std::string& why) {
  std::vector<std::string> candidates = {"c++", "g++", "clang++"};
  if (!chosen.empty()) candidates = {chosen};
  for (const std::string& program : candidates) {
    std::string messages;
    for (const std::vector<std::string>& options : kVariants) {
      messages.clear();
      if (works(program, options, messages)) {
        return FoundCompiler{program, identify(program, options), options};
      }
    }
    why += messages;
  }
  return std::nullopt;
}

}  // namespace

std::unique_ptr<KernelCompiler> makeCppCompiler(std::string& why) {
  // The search starts several programs, and a process may create many devices. The process
  // therefore remembers the compiler that it has found for a pair of values of HEDDLE_CXX and PATH.
  // If no compiler works, the next call searches again.
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, FoundCompiler> found;
  why.clear();
  const std::pair key(environment("HEDDLE_CXX"), environment("PATH"));
  std::lock_guard lock(mutex);
  auto entry = found.find(key);
  if (entry == found.end()) {
    const std::optional<FoundCompiler> compiler = findCompiler(key.first, why);
    if (!compiler) {
      why = "no C++ compiler works (set HEDDLE_CXX to one that does):\n" + why;
      return nullptr;
    }
    entry = found.emplace(key, *compiler).first;
  }
  return std::make_unique<CppCompiler>(entry->second);
}

}  // namespace heddle::codegen
