#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/bind/candidates.h"
#include "codegen/compile/image_cache.h"
#include "host/device/device.h"
#include "host/device/device_tensor.h"
#include "host/inspect.h"
#include "host/plan/kernel_store.h"
#include "ir/types/host_tensor.h"
#include "tools/tune/compare_outputs.h"
#include "tools/tune/measure_candidates.h"

namespace heddle::tools {

// Runs each candidate (variant) of one kernel, without the rest of the program. The inputs are
// random. They have the sizes and strides of the launch that the constructor gets as `kernel`.
// Every output has its own memory here, even if the program stores it in an input. An object
// allocates the operands, and the largest workspace (temporary memory) that a candidate needs. It
// also allocates a block of memory, which run() writes to flush the caches (256 MiB on a GPU, 32
// MiB on a CPU; as little as a quarter if the memory is exhausted).
class KernelRuns final : public CandidateTimer {
 public:
  // `all` are the candidates. `orders` has the reductionOrder() of each candidate
  // (codegen/bind/candidate_numbers.h): equal texts promise equal bits. The references must outlive
  // the object. If the memory is exhausted, throws UserError that names the kernel and what could
  // not be allocated.
  KernelRuns(const host::LaunchedKernel& kernel, const std::vector<codegen::Candidate>& all,
             std::vector<std::string> orders, host::Device& device, codegen::ImageCache& images,
             uint64_t seed);
  ~KernelRuns() override;
  KernelRuns(const KernelRuns&) = delete;
  KernelRuns& operator=(const KernelRuns&) = delete;

  // Compiles and runs every candidate once. Returns, per candidate, the reason why it cannot be
  // used, or "". The reasons are:
  // - It does not compile, or it does not run.
  // - Its results differ from the results of the first usable candidate by more than rounding
  //   errors (differenceOf() in tools/tune/compare_outputs.h).
  // - The bits of its results differ from the bits of an earlier usable candidate with the same
  //   order of reductions.
  std::vector<std::string> faults();
  double run(size_t candidate) override;
  // Returns the resources of a candidate. `registers` and `local_bytes` are the maxima over its
  // launches; the other members describe its first launch. nullopt: the device is a CPU.
  std::optional<host::KernelResources> resources(size_t candidate);

 private:
  void allocate(uint64_t seed);
  host::Tensor randomInput(const TensorDesc& desc, uint64_t seed, const std::string& name);
  void destroy();  // destroys the stream and the timers that exist
  void compile(std::vector<std::string>& faults);
  void launch(size_t candidate);
  void wait();
  void readOutputs(std::vector<HostTensor>& results);
  std::string compare(size_t candidate);

  const host::LaunchedKernel& kernel_;
  const std::vector<codegen::Candidate>& all_;
  const std::vector<std::string> orders_;
  host::Device& device_;
  host::KernelStore store_;
  std::vector<host::KernelStore::Loaded> loaded_;  // per candidate
  std::vector<Tolerance> tolerances_;
  std::vector<HostTensor> wanted_;  // the results of the first usable candidate
  std::vector<HostTensor> got_;     // the results of the latest candidate
  // By order of reductions: the first usable candidate, and the hash of its bits.
  std::map<std::string, std::pair<size_t, std::string>> bits_;
  host::Stream stream_ = nullptr;
  host::Event begin_ = nullptr;
  host::Event end_ = nullptr;
  host::ErrorSink errors_;
  std::vector<host::Tensor> operands_;  // inputs, then outputs; a scalar has no memory
  host::Tensor workspace_;
  host::Tensor counters_;  // codegen::LaunchStage::kCounters
  host::Tensor flushed_;
};

}  // namespace heddle::tools
