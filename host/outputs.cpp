#include "host/outputs.h"

#include <algorithm>

#include "host/run/run_record.h"
#include "ir/base/check.h"

namespace heddle::host {

void Outputs::wait() const { result_->completion->wait(); }

void Outputs::makeWait(Stream stream) const {
  const Completion& completion = *result_->completion;
  completion.resources->device().waitEvent(stream, completion.event);
}

size_t Outputs::size() const { return result_->values.size(); }

const Argument& Outputs::operator[](size_t i) const {
  HEDDLE_USER_CHECK(i < result_->values.size(), "there is no output {}: the program has {}", i,
                    result_->values.size());
  return result_->values[i];
}

const Tensor& Outputs::tensor(size_t i) const {
  const auto* found = std::get_if<Tensor>(&(*this)[i]);
  HEDDLE_USER_CHECK_CODE(Type, found != nullptr, "output {} (%{}) is a scalar, not a tensor", i,
                         name(i));
  return *found;
}

const Tensor& Outputs::tensor(std::string_view name) const { return tensor(positionOf(name)); }

Scalar Outputs::scalar(size_t i) const {
  const auto* found = std::get_if<Scalar>(&(*this)[i]);
  HEDDLE_USER_CHECK_CODE(Type, found != nullptr, "output {} (%{}) is a tensor, not a scalar", i,
                         name(i));
  return *found;
}

Scalar Outputs::scalar(std::string_view name) const { return scalar(positionOf(name)); }

const std::string& Outputs::name(size_t i) const {
  (*this)[i];  // throws if there is no output i
  return result_->completion->resources->output_names.at(i);
}

size_t Outputs::positionOf(std::string_view name) const {
  const std::vector<std::string>& names = result_->completion->resources->output_names;
  const auto found = std::find(names.begin(), names.end(), name);
  HEDDLE_USER_CHECK(found != names.end(), "there is no output %{}: the program has %{}", name,
                    fmt::join(names, ", %"));
  return static_cast<size_t>(found - names.begin());
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
    const bool same = outputs[j].buffer == output.buffer;
    if (same && hasMemory(outputs[j])) return AliasedTensor{false, j};
  }
  return std::nullopt;
}

std::string Outputs::numerics() const { return result_->completion->numericsReport(); }

}  // namespace heddle::host
