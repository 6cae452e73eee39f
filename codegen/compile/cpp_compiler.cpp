#include "codegen/compile/cpp_compiler.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "codegen/compile/child_process.h"
#include "codegen/compile/runtime_text.h"
#include "ir/base/error.h"

namespace heddle::codegen {
namespace {

// The reasons for some flags:
// - -fno-math-errno, -fno-trapping-math: with these flags the compiler vectorizes more loops. They
//   change no value.
// - -fwrapv: i64 overflow wraps, as in PyTorch.
// - -ffp-contract=off: no fused multiply-add. A multiplication and an addition then have the same
//   result whether one kernel or two kernels compute them. Results therefore do not depend on the
//   division of a fusion into kernels.
// - -mprefer-vector-width=512: by default GCC uses vectors of 32 bytes on Intel CPUs with AVX-512.
//   libmvec's functions for 64 bytes (codegen/runtime/cpu_math.h) are faster.
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

// The largest number of kernels in one run of the compiler. Each run has a fixed cost. Measured
// with GCC 12, the compilation of 10 kernels takes 1.9 s of CPU time in ten runs, 1.2 s in two
// runs, and 1.1 s in one run. Runs can execute at the same time. On two cores, two runs take the
// shortest time; on ten cores, ten runs would. ImageCache (codegen/compile/image_cache.h) therefore
// uses smaller groups if cores would be idle.
constexpr size_t kMostAtOnce = 16;

std::string readFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void writeFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  HEDDLE_USER_CHECK(!file.fail(), "cannot write the kernel source to {}", path);
}

class CppCompiler : public KernelCompiler {
 public:
  CppCompiler(std::string program, std::string identity, bool mvec)
      : program_(std::move(program)), identity_(std::move(identity)), mvec_(mvec) {}

  Target target() const override { return Target::Cpp; }
  std::string identity() const override { return identity_; }
  size_t mostAtOnce() const override { return kMostAtOnce; }

  std::vector<std::byte> compile(const KernelSource& source) const override {
    TempFolder folder;
    std::string text = runtimeHeader(Target::Cpp) + source.text;
    std::string in = folder.path() + "/kernel.cpp";
    std::string out = folder.path() + "/kernel.so";
    writeFile(in, text);
    std::vector<std::string> command = {program_};
    command.insert(command.end(), kFlags.begin(), kFlags.end());
    command.insert(command.end(), {in, "-o", out});
    command.push_back(mvec_ ? "-lmvec" : "-DHD_NO_LIBMVEC");
    command.push_back("-lm");
    ProcessResult result = runProcess(command);
    HEDDLE_USER_CHECK(result.started && result.exit_code == 0,
                      "{} failed with exit code {} on a kernel:\n{}\n{}", program_,
                      result.exit_code, result.output, numberLines(text));
    std::string image = readFile(out);
    HEDDLE_USER_CHECK(!image.empty(), "{} wrote no kernel to {}", program_, out);
    const std::byte* bytes = reinterpret_cast<const std::byte*>(image.data());
    return {bytes, bytes + image.size()};
  }

 private:
  std::string program_;
  std::string identity_;
  bool mvec_;
};

// Returns whether the compiler creates a shared object with kFlags, and with -lmvec if `mvec` is
// true. Appends the messages of the compiler to `why`.
bool works(const std::string& program, bool mvec, std::string& why) {
  TempFolder folder;
  std::string in = folder.path() + "/probe.cpp";
  writeFile(in, "extern \"C\" void heddle_probe() {}\n");
  std::vector<std::string> command = {program};
  command.insert(command.end(), kFlags.begin(), kFlags.end());
  command.insert(command.end(), {in, "-o", folder.path() + "/probe.so"});
  if (mvec) command.push_back("-lmvec");
  command.push_back("-lm");
  ProcessResult result = runProcess(command);
  if (result.started && result.exit_code == 0) return true;
  why += fmt::format("{}: exit code {}: {}\n", program, result.exit_code, result.output);
  return false;
}

// Returns the compiler, its version, its flags and its predefined macros. With -march=native, the
// macros name every CPU feature that the compiler uses on this machine.
std::string identify(const std::string& program, bool mvec) {
  ProcessResult version = runProcess({program, "--version"});
  ProcessResult macros =
      runProcess({program, "-march=native", "-O3", "-dM", "-E", "-x", "c++", "/dev/null"});
  std::string text = fmt::format("{}\n{}\n", program, version.output);
  for (const std::string& flag : kFlags) text += flag + " ";
  text += mvec ? "-lmvec -lm\n" : "-lm\n";
  return text + macros.output;
}

}  // namespace

std::unique_ptr<KernelCompiler> makeCppCompiler(std::string& why) {
  why.clear();
  std::vector<std::string> candidates = {"c++", "g++", "clang++"};
  const char* chosen = std::getenv("HEDDLE_CXX");
  if (chosen != nullptr && *chosen != 0) candidates = {chosen};
  for (const std::string& program : candidates) {
    std::string without_mvec;
    bool mvec = works(program, true, why);
    if (!mvec && !works(program, false, without_mvec)) continue;
    return std::make_unique<CppCompiler>(program, identify(program, mvec), mvec);
  }
  why = "no C++ compiler works (set HEDDLE_CXX to one that does):\n" + why;
  return nullptr;
}

}  // namespace heddle::codegen
