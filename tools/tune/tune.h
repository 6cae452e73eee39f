#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/compile/image_cache.h"
#include "host/device/device.h"
#include "host/inspect.h"
#include "host/program/program.h"
#include "tools/tune/choices_file.h"
#include "tools/tune/race.h"

namespace heddle::tools {

// What tuning has found out about one kernel with one set of sizes.
struct TunedKernel {
  struct Row {
    std::string parameters;
    double seconds = std::numeric_limits<double>::infinity();  // infinity: not measured
    int runs = 0;
    std::optional<int32_t> registers;  // registers per thread; only CUDA
    std::string fault;                 // why the candidate cannot be used; "": it can
  };
  std::string name;  // name of the kernel in the program
  int rank = 0;      // the first rank that launches it with these sizes
  std::string key;   // host::choiceKey()
  std::vector<Row> rows;
  size_t chosen = 0;
  bool was_known = false;  // true: the choice was stored; nothing was measured
};

struct TuneOptions {
  uint64_t seed = 0;         // seed of the random inputs
  bool measures_all = true;  // false: measures only kernels without a stored choice
  // Returns the stored choice for a key, or nullopt. May be empty.
  std::function<std::optional<std::string>(const std::string& key)> find;
  // Makes the timer of a kernel, and fills the faults and registers of the rows. Tests replace it.
  // Empty: KernelRuns (tools/tune/kernel_runs.h).
  std::function<std::unique_ptr<CandidateTimer>(const host::LaunchedKernel& kernel,
                                                const std::vector<codegen::Candidate>& all,
                                                std::vector<TunedKernel::Row>& rows)>
      makeTimer;
};

// Measures the candidates of each kernel that some rank of a job of `ranks` ranks launches.
// Measures each kernel alone, once per set of sizes. Visits loops, and both branches of a condition
// that is decided during the run. Does not run the program, which must contain no calls. Leaves out
// kernels with a forced candidate (Kernel::candidate). Throws UserError if a kernel has no usable
// candidate, if a forced candidate does not exist, or if the memory is exhausted.
std::vector<TunedKernel> tune(const host::Program& program, const SizeBindings& sizes, int ranks,
                              host::Device& device, codegen::ImageCache& images,
                              const TuneOptions& options);

// Returns the choices of all kernels.
Choices choicesOf(const std::vector<TunedKernel>& kernels);

// Return the results as a table and as CSV.
std::string tuneText(const std::vector<TunedKernel>& kernels);
std::string tuneCsv(const std::vector<TunedKernel>& kernels);

}  // namespace heddle::tools
