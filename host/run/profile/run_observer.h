#pragma once

#include <cstdint>

#include "comm/monitor/rank_status.h"
#include "host/device/device.h"
#include "host/run/profile/run_profile.h"

namespace heddle::host {

// Records the work on the streams of one run: in the status of this rank
// (comm/monitor/rank_status.h) and in a run profile (host/run/profile/run_profile.h). Each of the
// two may be nullptr. Only a CPU device calls an observer; on CUDA, the Issuer (host/run/issue.h)
// records the profile. Thread-safe.
class RunObserver final : public WorkObserver {
 public:
  RunObserver() = default;
  RunObserver(comm::RankStatus* status, RunProfile* profile) : status_(status), profile_(profile) {}

  bool observes() const { return status_ != nullptr || profile_ != nullptr; }
  int64_t begin(const Issue& issue, bool communicates) noexcept override;
  void end(const Issue& issue, bool communicates, int64_t begun) noexcept override;

 private:
  bool updatesStatus(const Issue& issue) const;

  comm::RankStatus* status_ = nullptr;
  RunProfile* profile_ = nullptr;
};

}  // namespace heddle::host
