#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "host/device/device_tensor.h"
#include "host/plan/plan.h"

namespace heddle::host {

// Caches plans. The key consists of the descriptors of inputs and preallocated outputs, and of
// which inputs are in host memory. Of more than kMost plans, the least recently used one is
// dropped. Not thread-safe.
class PlanCache {
 public:
  static constexpr size_t kMost = 128;

  // Returns the plan for these arguments, or nullptr. Allocates no memory.
  std::shared_ptr<const Plan> find(const std::vector<Argument>& inputs,
                                   const std::vector<Tensor>& preallocated);
  void add(const std::vector<Argument>& inputs, const std::vector<Tensor>& preallocated,
           std::shared_ptr<const Plan> plan);

 private:
  struct Entry {
    size_t hash;
    std::vector<std::optional<TensorDesc>> inputs;        // nullopt: a scalar
    std::vector<bool> in_host_memory;                     // parallel to inputs
    std::vector<std::optional<TensorDesc>> preallocated;  // nullopt: no data
    std::shared_ptr<const Plan> plan;
  };
  static bool matches(const Entry& entry, const std::vector<Argument>& inputs,
                      const std::vector<Tensor>& preallocated);

  std::vector<Entry> entries_;  // the latest used first
};

// Returns, per output, the completed descriptor of the caller's tensor, in the form that makePlan()
// takes. UserError: an axis of several elements without a positive stride.
std::vector<std::optional<TensorDesc>> preallocatedDescs(const std::vector<Tensor>& preallocated);

}  // namespace heddle::host
