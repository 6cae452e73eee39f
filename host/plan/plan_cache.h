#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "host/device/device_tensor.h"
#include "host/plan/plan.h"

namespace heddle::host {

// Plans by what decides them: descriptors of inputs and preallocated outputs, and which inputs are
// in host memory. The latest use is
// first, the oldest of more than kMost goes. Not thread-safe.
class PlanCache {
 public:
  static constexpr size_t kMost = 128;

  // nullptr when there is none. Allocates nothing.
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

  std::vector<Entry> entries_;
};

// Per output the descriptor of the caller's tensor with its gaps filled, as makePlan() takes it.
std::vector<std::optional<TensorDesc>> preallocatedDescs(const std::vector<Tensor>& preallocated);

}  // namespace heddle::host
