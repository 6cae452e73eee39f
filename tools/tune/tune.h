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

// The result of tuning one kernel for one set of sizes. It has one row per candidate, that is, per
// variant of the kernel (codegen/bind/candidates.h).
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
  int rank = 0;      // the first rank that launches the kernel with these sizes
  std::string key;   // host::choiceKey()
  std::vector<Row> rows;
  size_t chosen = 0;
  // Measured: the candidates were measured. The other values say why they were not:
  // - Stored: the choice was stored.
  // - Single: there is only one candidate.
  // - Alike: the time model expects almost equal times of all candidates.
  // - Agreed: TuneOptions::agreed decides.
  enum class Origin : uint8_t { Measured, Stored, Single, Alike, Agreed };
  Origin origin = Origin::Measured;
};

// Which kernels to measure: all kernels, kernels without a stored choice, or kernels without a
// stored choice whose candidates have different predicted times (areDifferent()). A kernel with
// only one candidate is never measured.
enum class Measured : uint8_t { All, Unknown, Different };

// The parameters of a chosen candidate, with the key of its kernel (host::choiceKey()).
struct KeyedChoice {
  std::string key;
  std::string parameters;
};

struct TuneOptions {
  uint64_t seed = 0;  // seed of the random inputs
  Measured measured = Measured::All;
  // Returns the stored choice for a key, or nullopt. Empty: no choice is stored.
  std::function<std::optional<std::string>(const std::string& key)> find;
  // Creates the timer of a kernel, and fills the faults, the registers and the local memory of the
  // rows. Only tests set this member. Empty: KernelRuns (tools/tune/kernel_runs.h).
  std::function<std::unique_ptr<CandidateTimer>(const host::LaunchedKernel& kernel,
                                                const std::vector<codegen::Candidate>& all,
                                                std::vector<TunedKernel::Row>& rows)>
      makeTimer;
  // true: compiles later kernels while earlier kernels are measured. nullopt: only on CUDA, or if
  // the CPU device leaves some processors idle.
  std::optional<bool> compiles_ahead;
  // Called before each kernel that is measured. May be empty.
  std::function<void()> on_kernel;
  // If not empty: the choices of another rank for the same program (keyedChoicesOf()). Each kernel
  // then gets the candidate that the other rank has chosen, or a candidate that gives the same
  // bits. If both ranks have the same key for the kernel, their devices are equal, and the kernel
  // gets the choice of the other rank. Otherwise only candidates with the same order of reductions
  // may be chosen, and `measured` says whether they are measured.
  std::vector<KeyedChoice> agreed;
};

// Chooses a candidate for each kernel that some rank of a job of `ranks` ranks launches, once per
// key (host::choiceKey()). Measures the candidates of the kernels that TuneOptions::measured
// selects, each kernel alone. Includes kernels in loops, and in both branches of a condition that
// is decided during the run. Does not run the program, which must contain no Call instructions.
// Leaves out kernels with a forced candidate (Kernel::candidate) and kernels that launch nothing.
// Throws UserError if a kernel has no usable candidate, if a forced or agreed candidate does not
// exist, or if the memory is exhausted.
std::vector<TunedKernel> tune(const host::Program& program, const SizeBindings& sizes, int ranks,
                              host::Device& device, codegen::ImageCache& images,
                              const TuneOptions& options);

// Returns whether the largest predicted time exceeds the smallest one by more than 3 %.
bool areDifferent(const std::vector<TunedKernel::Row>& rows);

// Sets the fault of each usable candidate that uses more than kMostLocalBytes bytes of local memory
// per thread, unless all usable candidates do. Such candidates spill registers, and each access to
// a spilled register is an access to the cache.
void dropSpilled(std::vector<TunedKernel::Row>& rows);
inline constexpr int64_t kMostLocalBytes = 256;

// Return the choices of all kernels: as a list in the order of `kernels`, and as a map.
std::vector<KeyedChoice> keyedChoicesOf(const std::vector<TunedKernel>& kernels);
Choices choicesOf(const std::vector<TunedKernel>& kernels);

}  // namespace heddle::tools
