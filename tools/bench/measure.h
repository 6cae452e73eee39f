#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/compile/image_cache.h"
#include "host/device/device.h"
#include "host/program/program.h"
#include "tools/heddle/prepare.h"
#include "tools/tune/choices_file.h"

namespace heddle::tools {

// One launch of a kernel. `entry` is the name of the kernel function. `resources` is nullopt on
// every device except CUDA.
struct BenchLaunch {
  std::string entry;
  int64_t grid = 1;
  int32_t grid_y = 1;
  int32_t block = 1;
  std::optional<host::KernelResources> resources;
};

// The measurement of one instruction, or of all instructions together.
struct BenchRow {
  host::InstructionIndex instruction = -1;  // -1: all instructions
  std::string text;                         // text of the instruction, or "total"
  double seconds = 0;  // time of all executions in one run; median over the timed runs
  int64_t bytes = 0;   // bytes that all executions in one run read and write
  std::vector<BenchLaunch> launches;

  double bytesPerSecond() const { return static_cast<double>(bytes) / seconds; }
};

struct Measurements {
  int64_t copy_tensor_bytes = 0;     // size of the tensor that was copied
  double copy_bytes_per_second = 0;  // bytes read and written; median over the timed runs
  std::vector<BenchRow> rows;        // in the order of the program
  // All instructions together. `seconds` is the median time from the begin of the first to the end
  // of the last device work of a run.
  BenchRow total;
};

constexpr int kWarmRuns = 3;

// Runs a program on one device: first kWarmRuns times, then `runs` times with measurements. A copy
// of a large tensor (tools/bench/copy_runs.h) precedes each run. `choices` are those of
// ExecutableOptions::kernel_choices. Throws UserError if the program does no work on the device.
Measurements measure(const Prepared& prepared, host::Device& device, codegen::ImageCache& images,
                     const Choices& choices, int runs);

}  // namespace heddle::tools
