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

std::optional<size_t> Outputs::aliasedInput(size_t i) const {
  (*this)[i];  // checks the index
  const Plan::Output& output = result_->completion->plan->outputs[i];
  if (output.input < 0 || output.preallocated) return std::nullopt;
  return static_cast<size_t>(output.input);
}

}  // namespace heddle::host
