#include "host/run/profile/run_observer.h"

namespace heddle::host {

// Returns whether this work updates the status: it must belong to an instruction, and the run must
// have no error. After an error, the status must keep the instruction that failed.
bool RunObserver::updatesStatus(const Issue& issue) const {
  const bool failed = issue.errors != nullptr && issue.errors->failed();
  return status_ != nullptr && issue.instruction >= 0 && !failed;
}

int64_t RunObserver::begin(const Issue& issue, bool communicates) noexcept {
  if (updatesStatus(issue)) status_->begin(issue.instruction, communicates);
  return profile_ == nullptr ? 0 : RunProfile::now();
}

void RunObserver::end(const Issue& issue, bool communicates, int64_t begun) noexcept {
  if (updatesStatus(issue)) status_->end(issue.instruction, communicates);
  if (profile_ != nullptr) profile_->addWork(issue.step, begun, RunProfile::now());
}

}  // namespace heddle::host
