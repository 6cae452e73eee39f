#include "codegen/cuda/nvrtc.h"

#include <nvrtc.h>

#include <cstdlib>

#include "codegen/compile/child_process.h"
#include "codegen/compile/runtime_text.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

void check(nvrtcResult result, const char* call) {
  HEDDLE_USER_CHECK_CODE(CompileFailure, result == NVRTC_SUCCESS, "{}: {}", call,
                         nvrtcGetErrorString(result));
}

class Program {
 public:
  explicit Program(const std::string& text) {
    check(nvrtcCreateProgram(&program_, text.c_str(), "kernel.cu", 0, nullptr, nullptr),
          "nvrtcCreateProgram");
  }
  ~Program() { nvrtcDestroyProgram(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  nvrtcResult compile(const std::vector<std::string>& options) {
    std::vector<const char*> argv;
    for (const std::string& option : options) argv.push_back(option.c_str());
    return nvrtcCompileProgram(program_, static_cast<int>(argv.size()), argv.data());
  }

  std::string log() {
    size_t size = 0;
    check(nvrtcGetProgramLogSize(program_, &size), "nvrtcGetProgramLogSize");
    std::string text(size, '\0');
    if (size > 0) check(nvrtcGetProgramLog(program_, text.data()), "nvrtcGetProgramLog");
    return text.c_str();  // without the terminating zero
  }

  std::vector<std::byte> cubin() {
    size_t size = 0;
    check(nvrtcGetCUBINSize(program_, &size), "nvrtcGetCUBINSize");
    std::vector<std::byte> image(size);
    check(nvrtcGetCUBIN(program_, reinterpret_cast<char*>(image.data())), "nvrtcGetCUBIN");
    return image;
  }

 private:
  nvrtcProgram program_ = nullptr;
};

class NvrtcCompiler : public KernelCompiler {
 public:
  explicit NvrtcCompiler(const std::string& arch)
      // --fmad=false: NVRTC creates no fused multiply-add. The result of a multiplication and an
      // addition must not depend on whether the two ops are in the same kernel.
      : options_{"--gpu-architecture=" + arch, "-std=c++17", "--fmad=false"} {
    int major = 0;
    int minor = 0;
    check(nvrtcVersion(&major, &minor), "nvrtcVersion");
    identity_ = fmt::format("nvrtc {}.{}", major, minor);
    for (const std::string& option : options_) identity_ += " " + option;
    constexpr int kFirstWithClusters = 90;
    const size_t digits = arch.find_first_of("0123456789");
    HEDDLE_USER_CHECK(digits != std::string::npos, "'{}' is not a GPU architecture", arch);
    supports_clusters_ = std::atoi(arch.c_str() + digits) >= kFirstWithClusters;
  }

  Target target() const override { return Target::Cuda; }
  std::string identity() const override { return identity_; }
  bool supportsClusters() const override { return supports_clusters_; }

  std::vector<std::byte> compile(const KernelSource& source) const override {
    std::string text = runtimeHeader(Target::Cuda) + source.text;
    Program program(text);
    nvrtcResult result = program.compile(options_);
    HEDDLE_USER_CHECK_CODE(CompileFailure, result == NVRTC_SUCCESS,
                           "nvrtcCompileProgram: {} ({}) on a kernel:\n{}\n{}",
                           nvrtcGetErrorString(result), identity_, program.log(),
                           numberLines(text));
    return program.cubin();
  }

 private:
  std::vector<std::string> options_;
  std::string identity_;
  bool supports_clusters_ = false;
};

}  // namespace

std::unique_ptr<KernelCompiler> makeNvrtcCompiler(const std::string& arch) {
  return std::make_unique<NvrtcCompiler>(arch);
}

extern "C" KernelCompiler* heddleMakeNvrtcCompiler(const char* arch) {
  try {
    return makeNvrtcCompiler(arch).release();
  } catch (const UserError&) {
    return nullptr;
  }
}

}  // namespace heddle::codegen
