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

}  // namespace heddle::host
