#include "tools/bench/measure.h"

#include <algorithm>
#include <map>
#include <memory>

#include "host/executable_parts.h"
#include "host/run/profile/run_profile.h"
#include "host/run/run_state.h"
#include "ir/base/check.h"
#include "tools/bench/copy_runs.h"
#include "tools/bench/median.h"

namespace heddle::tools {
namespace {

// The measurements of one instruction in all timed runs.
struct Samples {
  std::string text;
  std::vector<double> seconds;  // per run: the sum over the executions in the run
  int64_t bytes = 0;            // bytes that the instruction read and wrote in the last run
  std::vector<BenchLaunch> launches;
};

// The sums over all executions of one instruction in one run.
struct Executions {
  std::string text;
  int64_t nanoseconds = 0;
  int64_t bytes = 0;
};

class Measurer {
 public:
  Measurer(const Prepared& prepared, host::Device& device, codegen::ImageCache& images,
           const Choices& choices)
      : device_(device),
        stream_(std::make_shared<host::SharedStream>(device)),
        executable_(executableOf(prepared.program, {&device, nullptr, &images}, choices, stream_)),
        arguments_(
            placeInputs({0, 1, &device, nullptr, nullptr}, executable_.program(), prepared.inputs)),
        copies_(device, images, stream_) {}

  void warmUp() {
    for (int i = 0; i < kWarmRuns; ++i) runOnce();
    HEDDLE_USER_CHECK(!instructions_.empty(),
                      "the program does no work on the device, so there is nothing to measure");
    instructions_.clear();
    totals_.clear();
    copies_per_second_.clear();
  }

  void runOnce();
  Measurements results() const;

 private:
  static host::Executable executableOf(const host::Program& program, const host::Context& context,
                                       const Choices& choices,
                                       const std::shared_ptr<host::SharedStream>& stream) {
    host::ExecutableOptions options;
    options.verify = false;  // compileProgram() has verified the program
    options.kernel_choices = choices;
    host::ExecutableParts parts;
    parts.stream = stream;
    return parts.make(program, context, options);
  }
  std::vector<BenchLaunch> launchesOf(const std::vector<host::RunProfile::Launch>& launches) const;
  void addRun();

  host::Device& device_;
  std::shared_ptr<host::SharedStream> stream_;
  host::Executable executable_;
  std::vector<host::Argument> arguments_;
  CopyRuns copies_;
  host::RunProfile profile_;
  std::map<host::InstructionIndex, Samples> instructions_;
  std::vector<double> totals_;  // seconds
  std::vector<double> copies_per_second_;
};

void Measurer::runOnce() {
  copies_.enqueue();
  host::RunOptions options;
  options.profile = &profile_;
  executable_.run(arguments_, options).wait();
  copies_per_second_.push_back(copies_.bytesPerSecond());
  addRun();
}

std::vector<BenchLaunch> Measurer::launchesOf(
    const std::vector<host::RunProfile::Launch>& launches) const {
  std::vector<BenchLaunch> result;
  for (const host::RunProfile::Launch& launch : launches) {
    const codegen::LaunchStage& stage = *launch.stage;
    result.push_back({stage.entry, stage.grid, stage.grid_y, stage.block,
                      device_.resourcesOf(launch.kernel, stage)});
  }
  return result;
}

// Adds the events of the last run to the samples.
void Measurer::addRun() {
  const auto work = profile_.deviceWork();
  std::map<host::InstructionIndex, Executions> run;
  int64_t begin = 0;
  int64_t end = 0;
  for (const host::TimelineEvent& event : profile_.events()) {
    if (!event.stream.valid() || !work.contains(event.instruction)) continue;
    begin = run.empty() ? event.begin : std::min(begin, event.begin);
    end = run.empty() ? event.end : std::max(end, event.end);
    Executions& executions = run[event.instruction];
    executions.text = event.text;
    executions.nanoseconds += event.end - event.begin;
    executions.bytes += event.bytes;
  }
  if (run.empty()) return;
  totals_.push_back(1e-9 * static_cast<double>(end - begin));
  for (const auto& [instruction, executions] : run) {
    Samples& samples = instructions_[instruction];
    samples.seconds.push_back(1e-9 * static_cast<double>(executions.nanoseconds));
    samples.bytes = executions.bytes;
    if (samples.text.empty()) {
      samples.text = executions.text;
      samples.launches = launchesOf(work.at(instruction));
    }
  }
}

Measurements Measurer::results() const {
  Measurements results;
  results.copy_tensor_bytes = copies_.tensorBytes();
  results.copy_bytes_per_second = median(copies_per_second_);
  results.total.text = "total";
  results.total.seconds = median(totals_);
  for (const auto& [instruction, samples] : instructions_) {
    results.rows.push_back(
        {instruction, samples.text, median(samples.seconds), samples.bytes, samples.launches});
    results.total.bytes += samples.bytes;
  }
  return results;
}

}  // namespace

Measurements measure(const Prepared& prepared, host::Device& device, codegen::ImageCache& images,
                     const Choices& choices, int runs) {
  Measurer measurer(prepared, device, images, choices);
  measurer.warmUp();
  for (int i = 0; i < runs; ++i) measurer.runOnce();
  return measurer.results();
}

}  // namespace heddle::tools
