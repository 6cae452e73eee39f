#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/bind/candidates.h"
#include "codegen/compile/image_cache.h"
#include "host/device/device.h"
#include "host/device/device_tensor.h"
#include "host/inspect.h"
#include "host/plan/kernel_store.h"
#include "ir/types/host_tensor.h"
#include "tools/tune/race.h"

namespace heddle::tools {

// Runs the candidates of one kernel alone, on random inputs with the sizes and strides of its
// launch. Every output has memory of its own, also if the program stores it in an input. Needs the
// memory of the operands, of the largest workspace, and of a block that replaces the contents of
// the caches.
class KernelRuns final : public CandidateTimer {
 public:
  // The references must outlive the object. Throws UserError that names the kernel and the operand
  // if the memory is exhausted.
  KernelRuns(const host::LaunchedKernel& kernel, const std::vector<codegen::Candidate>& all,
             host::Device& device, codegen::ImageCache& images, uint64_t seed);
  ~KernelRuns() override;
  KernelRuns(const KernelRuns&) = delete;
  KernelRuns& operator=(const KernelRuns&) = delete;

  // Compiles and runs every candidate once. Returns, per candidate, why it cannot be used: it does
  // not compile, it does not run, or its results differ from those of the first usable candidate.
  // "": it can be used.
  std::vector<std::string> faults();
  double run(size_t candidate) override;
  // Returns the largest numbers over the launches of a candidate, or nullopt on a CPU.
  std::optional<host::KernelResources> resources(size_t candidate);

 private:
  void compile(std::vector<std::string>& faults);
  void launch(size_t candidate);
  void wait();
  std::vector<HostTensor> outputs();

  const host::LaunchedKernel& kernel_;
  const std::vector<codegen::Candidate>& all_;
  host::Device& device_;
  host::KernelStore store_;
  std::vector<host::KernelStore::Loaded> loaded_;  // per candidate
  std::vector<bool> of_float_sums_;                // outputsOfFloatSums()
  host::Stream stream_ = nullptr;
  host::Event begin_ = nullptr;
  host::Event end_ = nullptr;
  host::ErrorSink errors_;
  std::vector<host::Tensor> operands_;  // inputs, then outputs; a scalar has no memory
  host::Tensor workspace_;
  host::Tensor flushed_;
};

}  // namespace heddle::tools
