#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "host/device/device_tensor.h"
#include "host/plan/plan.h"

namespace heddle::host {

// Caches up to kMost plans (host/plan/plan.h). The key consists of the descriptors of the inputs
// and of preallocated outputs, and of one flag per input: whether the input is in host memory. A
// full cache drops the least recently used plan. Not thread-safe.
class PlanCache {
 public:
  static constexpr size_t kMost = 128;

  // Returns the plan for these arguments, or nullptr if there is none. Allocates no memory.
  std::shared_ptr<const Plan> find(const std::vector<Argument>& inputs,
                                   const std::vector<Tensor>& preallocated);
  void add(const std::vector<Argument>& inputs, const std::vector<Tensor>& preallocated,
           std::shared_ptr<const Plan> plan);

 private:
  struct Entry {
    size_t hash;
    std::vector<std::optional<TensorDesc>> inputs;        // nullopt: a scalar
    std::vector<bool> in_host_memory;                     // per input
    std::vector<std::optional<TensorDesc>> preallocated;  // nullopt: not preallocated
    std::shared_ptr<const Plan> plan;
  };
  static bool matches(const Entry& entry, const std::vector<Argument>& inputs,
                      const std::vector<Tensor>& preallocated);

  std::vector<Entry> entries_;  // most recently used first
};

// Returns the descriptors of preallocated outputs in the form that makePlan() takes: one entry per
// tensor, nullopt for a tensor without data. Empty lists of a descriptor get the values of an
// unpadded row-major tensor.
// Throws UserError if an axis with several elements has no positive stride.
std::vector<std::optional<TensorDesc>> preallocatedDescs(const std::vector<Tensor>& preallocated);

}  // namespace heddle::host
