// Tests how ranks with different devices agree on choices. The ranks are threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "comm/in_process/worlds.h"
#include "tests/comm/ranks.h"
#include "tests/tools/tuning.h"
#include "tools/tune/tune_command.h"

namespace heddle::tools::tune_command_choices_cpu_test {
namespace {

using tuning::kColumns;
using tuning::kRows;
using tuning::kSizes;

// The choices are stored in a folder of the test.
class TuneCommandChoices : public ::testing::Test {
 protected:
  TuneCommandChoices() {
    std::string name = (std::filesystem::temp_directory_path() / "heddle-choices-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) folder_ = name;
    const char* before = std::getenv("HEDDLE_CACHE_DIR");
    if (before != nullptr) before_ = before;
    setenv("HEDDLE_CACHE_DIR", folder_.c_str(), 1);
  }
  ~TuneCommandChoices() override {
    before_ ? setenv("HEDDLE_CACHE_DIR", before_->c_str(), 1) : unsetenv("HEDDLE_CACHE_DIR");
    std::filesystem::remove_all(folder_);
  }

  // Tunes on one thread per rank, whose device has the given number of threads. Returns the results
  // of the program on each rank.
  std::vector<std::vector<float>> resultsOn(const std::vector<int>& threads) {
    const host::Program program = host::testing::programOf(tuning::kProgram);
    std::vector<std::vector<float>> results(threads.size());
    choices_.resize(threads.size());
    const auto errors = comm::conformance::runRanks(
        comm::makeInProcessWorlds(static_cast<int>(threads.size())),
        [&](std::unique_ptr<comm::World>& world) {
          const auto own = static_cast<size_t>(world->rank());
          const auto device = host::makeCpuDevice({threads[own], std::nullopt});
          codegen::ImageCache images(folder_);
          Options options;
          options.tune = "full";
          const Rank rank{world->rank(), world->size(), device.get(), world.get(), nullptr};
          choices_[own] = choicesForRun(rank, program, kSizes, {}, options, images);
          host::ExecutableOptions run;
          run.kernel_choices = choices_[own];
          run.choices_only = true;
          results[own] = outputsOf(program, *device, images, run);
        });
    comm::conformance::expectAllWell(errors);
    return results;
  }

  std::vector<Choices> choices_;  // per rank

 private:
  static std::vector<float> outputsOf(const host::Program& program, host::Device& device,
                                      codegen::ImageCache& images,
                                      const host::ExecutableOptions& run) {
    std::vector<float> x;
    for (int i = 0; i < kRows * kColumns; ++i) x.push_back(std::sin(static_cast<float>(i)));
    host::Executable executable(program, {&device, nullptr, &images}, run);
    const host::Outputs outputs = executable.run(
        {host::testing::deviceFloats(device, x, {kRows, kColumns}), Scalar(int64_t{0})});
    outputs.wait();
    return host::testing::floatsOf(device, outputs[0]);
  }

  std::string folder_;
  std::optional<std::string> before_;
};

TEST_F(TuneCommandChoices, EqualDevicesHaveEqualChoices) {
  const std::vector<std::vector<float>> results = resultsOn({1, 1});
  EXPECT_EQ(choices_[0].size(), 3u);
  EXPECT_EQ(choices_[0], choices_[1]);
  EXPECT_EQ(results[0], results[1]);
}

TEST_F(TuneCommandChoices, DifferentDevicesHaveChoicesThatGiveTheSameBits) {
  const std::vector<std::vector<float>> results = resultsOn({1, 2});
  EXPECT_EQ(choices_[0].size(), 3u);
  EXPECT_EQ(choices_[1].size(), 3u);
  for (const auto& [key, parameters] : choices_[0]) EXPECT_FALSE(choices_[1].contains(key));
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace heddle::tools::tune_command_choices_cpu_test
