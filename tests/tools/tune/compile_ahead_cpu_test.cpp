// Tests that kernels are compiled while other kernels are measured. No test depends on a time.
#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>

#include "tests/host/faulty_device.h"
#include "tests/tools/tuning.h"
#include "tools/tune/compile_ahead.h"

namespace heddle::tools::compile_ahead_cpu_test {
namespace {

// Counts the sources that it compiles.
class CountingCompiler : public codegen::KernelCompiler {
 public:
  explicit CountingCompiler(const codegen::KernelCompiler& inner) : inner_(inner) {}
  codegen::Target target() const override { return inner_.target(); }
  std::string identity() const override { return inner_.identity(); }
  std::vector<std::byte> compile(const codegen::KernelSource& source) const override {
    {
      std::lock_guard lock(mutex_);
      ++compiled_;
      changed_.notify_all();
    }
    if (fails) userError("fails on purpose");
    return inner_.compile(source);
  }
  // Waits until a source is compiled. ctest ends a test that waits for ever.
  void await() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return compiled_ > 0; });
  }
  int compiled() const {
    std::lock_guard lock(mutex_);
    return compiled_;
  }
  bool fails = false;

 private:
  const codegen::KernelCompiler& inner_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int compiled_ = 0;
};

class DeviceWithCompiler : public host::testing::FaultyDevice {
 public:
  const codegen::KernelCompiler* compiler() const override { return &counting; }
  CountingCompiler counting{*FaultyDevice::compiler()};
};

// The first run waits until some kernel is compiled.
class WaitingTimer : public CandidateTimer {
 public:
  explicit WaitingTimer(const CountingCompiler& compiler) : compiler_(compiler) {}
  double run(size_t) override {
    compiler_.await();
    return 1e-3;
  }

 private:
  const CountingCompiler& compiler_;
};

class CompileAheadOfKernels : public tuning::Tuning {
 protected:
  CompileAheadOfKernels() : folder_(makeTempFolder()), own_images_(folder_) {}
  ~CompileAheadOfKernels() override { std::filesystem::remove_all(folder_); }

  std::vector<TunedKernel> tuneWith(bool compiles_ahead) {
    TuneOptions options;
    options.compiles_ahead = compiles_ahead;
    options.makeTimer = [&](const host::LaunchedKernel&, const std::vector<codegen::Candidate>& all,
                            std::vector<TunedKernel::Row>&) -> std::unique_ptr<CandidateTimer> {
      if (compiles_ahead) return std::make_unique<WaitingTimer>(device.counting);
      return std::make_unique<tuning::FakeTimer>(all.size(), 0);
    };
    return tune(program_, tuning::kSizes, 1, device, own_images_, options);
  }

  DeviceWithCompiler device;

 private:
  static std::string makeTempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "heddle-ahead-XXXXXX").string();
    return mkdtemp(name.data()) == nullptr ? std::string() : name;
  }

  const std::string folder_;
  codegen::ImageCache own_images_;
};

// The timers compile nothing, so a thread of its own compiles the later kernels meanwhile.
TEST_F(CompileAheadOfKernels, LaterKernelsCompileWhileTheFirstOneIsMeasured) {
  EXPECT_EQ(tuneWith(true).size(), 3u);
  EXPECT_GT(device.counting.compiled(), 0);
}

TEST_F(CompileAheadOfKernels, NothingIsCompiledAheadIfTheCallerForbidsIt) {
  EXPECT_EQ(tuneWith(false).size(), 3u);
  EXPECT_EQ(device.counting.compiled(), 0);
}

TEST_F(CompileAheadOfKernels, ErrorsOfTheCompilerAreLeftToTheMeasurement) {
  device.counting.fails = true;
  EXPECT_EQ(tuneWith(true).size(), 3u);
}

}  // namespace
}  // namespace heddle::tools::compile_ahead_cpu_test
