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
#include "tools/tune/measure_candidates.h"

namespace heddle::tools {

// What tuning has found out about one kernel with one set of sizes.
struct TunedKernel {
  struct Row {
    std::string parameters;
    double predicted = 0;  // seconds that the time model expects (codegen/bind/time_model.h)
    double seconds = std::numeric_limits<double>::infinity();  // infinity: not measured
    int runs = 0;
    std::optional<int32_t> registers;  // registers per thread; only CUDA
    int64_t local_bytes = 0;           // local memory per thread; only CUDA
    std::string fault;                 // why the candidate cannot be used; "": it can
  };
  std::string name;  // name of the kernel in the program
  int rank = 0;      // the first rank that launches it with these sizes
  std::string key;   // host::choiceKey()
  std::vector<Row> rows;
  size_t chosen = 0;
  // Measured; or why nothing was measured: the choice was stored, there is only one candidate, the
  // time model expects almost equal times of all candidates, or TuneOptions::agreed decides.
  enum class Origin : uint8_t { Measured, Stored, Single, Alike, Agreed };
  Origin origin = Origin::Measured;
};

// Which kernels to measure: all; those without a stored choice; or those without a stored choice
// whose candidates differ according to the time model.
enum class Measured : uint8_t { All, Unknown, Different };

// A choice with its key.
struct KeyedChoice {
  std::string key;
  std::string parameters;
};

struct TuneOptions {
  uint64_t seed = 0;  // seed of the random inputs
  Measured measured = Measured::All;
  // Returns the stored choice for a key, or nullopt. May be empty.
  std::function<std::optional<std::string>(const std::string& key)> find;
  // Makes the timer of a kernel, and fills the faults, the registers and the local memory of the
  // rows. Tests replace it. Empty: KernelRuns (tools/tune/kernel_runs.h).
  std::function<std::unique_ptr<CandidateTimer>(const host::LaunchedKernel& kernel,
                                                const std::vector<codegen::Candidate>& all,
                                                std::vector<TunedKernel::Row>& rows)>
      makeTimer;
  // Compile later kernels while earlier ones are measured. nullopt: only if this leaves the
  // processors idle that the device needs.
  std::optional<bool> compiles_ahead;
  // Called before each kernel that is measured. May be empty.
  std::function<void()> on_kernel;
  // If not empty: the choices of another rank for the same program, in the order of its result.
  // Each kernel then gets this choice, or another one that gives the same bits. With equal keys,
  // the devices are equal, and the choice is that of the other rank. Otherwise, the candidates with
  // the same order of reductions are measured.
  std::vector<KeyedChoice> agreed;
};

// Measures the candidates of each kernel that some rank of a job of `ranks` ranks launches.
// Measures each kernel alone, once per set of sizes. Visits loops, and both branches of a condition
// that is decided during the run. Does not run the program, which must contain no calls. Leaves out
// kernels with a forced candidate (Kernel::candidate). Throws UserError if a kernel has no usable
// candidate, if a forced candidate does not exist, or if the memory is exhausted.
std::vector<TunedKernel> tune(const host::Program& program, const SizeBindings& sizes, int ranks,
                              host::Device& device, codegen::ImageCache& images,
                              const TuneOptions& options);

// Returns whether the largest predicted time exceeds the smallest one by more than 3 %.
bool areDifferent(const std::vector<TunedKernel::Row>& rows);

// Drops the candidates that use more than kMostLocalBytes bytes of local memory per thread, except
// if no usable candidate uses less. Such candidates spill registers, and each access to a spilled
// register is an access to the cache.
void dropSpilled(std::vector<TunedKernel::Row>& rows);
inline constexpr int64_t kMostLocalBytes = 256;

// Returns the choices of all kernels, in the order of their first launches, and as a map.
std::vector<KeyedChoice> keyedChoicesOf(const std::vector<TunedKernel>& kernels);
Choices choicesOf(const std::vector<TunedKernel>& kernels);

}  // namespace heddle::tools
