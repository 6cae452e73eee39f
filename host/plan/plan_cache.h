#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "host/device/device_tensor.h"
#include "host/plan/plan.h"
#include "host/plan/size_inputs.h"

namespace heddle::host {

// Caches up to kMost plans (host/plan/plan.h). The key consists of the descriptors and the
// alignments of the inputs and of preallocated outputs, of one flag per input: whether the input is
// in host memory, and of the values of the inputs that decide sizes. For late inputs
// (host/unroll/late_scalars.h), a plan is found for all values in a range. A full cache drops the
// least recently used plan. Not thread-safe.
class PlanCache {
 public:
  static constexpr size_t kMost = 128;

  PlanCache() = default;
  explicit PlanCache(SizeInputs scalars) : scalars_(std::move(scalars)) {}

  // Returns the plan for these arguments, or nullptr if there is none. Allocates no memory.
  std::shared_ptr<const Plan> find(const std::vector<Argument>& inputs,
                                   const std::vector<Tensor>& preallocated);
  void add(const std::vector<Argument>& inputs, const std::vector<Tensor>& preallocated,
           std::shared_ptr<const Plan> plan);

 private:
  // What a plan depends on for one tensor of the caller.
  struct Given {
    std::optional<TensorDesc> desc;  // nullopt: a scalar, or an output that is not preallocated
    bool in_host_memory = false;
    int32_t alignment = codegen::kFullAlignment;
  };
  struct Entry {
    size_t hash;
    std::vector<Given> inputs;
    std::vector<Given> preallocated;
    std::vector<LateRange> scalars;  // of the inputs that decide sizes
    std::shared_ptr<const Plan> plan;
  };
  static bool matches(const Given& given, const Tensor* tensor);
  size_t hashOf(const std::vector<Argument>& inputs, const std::vector<Tensor>& preallocated) const;
  bool matches(const Entry& entry, const std::vector<Argument>& inputs,
               const std::vector<Tensor>& preallocated) const;

  SizeInputs scalars_;
  std::vector<Entry> entries_;  // most recently used first
};

// Describes the tensors of a run in the form that makePlan() takes. If a list in the descriptor of
// a preallocated output is empty, it gets the values of an unpadded row-major tensor.
// Throws UserError if an axis of a preallocated output with several elements has no positive
// stride.
GivenTensors givenTensors(const std::vector<Argument>& inputs,
                          const std::vector<Tensor>& preallocated);

}  // namespace heddle::host
