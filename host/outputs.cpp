#include "host/outputs.h"

#include "host/run/run_record.h"
#include "ir/base/error.h"

namespace heddle::host {

void Outputs::wait() const { result_->completion->wait(); }

size_t Outputs::size() const { return result_->values.size(); }

const Argument& Outputs::operator[](size_t i) const {
  HEDDLE_USER_CHECK(i < result_->values.size(), "there is no output {}: the program has {}", i,
                    result_->values.size());
  return result_->values[i];
}

std::optional<AliasedTensor> Outputs::aliased(size_t i) const {
  (*this)[i];  // throws if there is no output i
  const std::vector<Plan::Output>& outputs = result_->completion->plan->outputs;
  const auto hasMemory = [](const Plan::Output& output) {
    return !output.scalar.valid() && !output.preallocated && output.desc.held;
  };
  const Plan::Output& output = outputs[i];
  if (!hasMemory(output)) return std::nullopt;
  if (output.input >= 0) return AliasedTensor{true, static_cast<size_t>(output.input)};
  for (size_t j = 0; j < i; ++j) {
    const bool same = outputs[j].place.pointer == output.place.pointer;
    if (same && hasMemory(outputs[j])) return AliasedTensor{false, j};
  }
  return std::nullopt;
}

}  // namespace heddle::host
