#pragma once

#include <cstdint>
#include <string>

namespace heddle::comm::nccl {

// The functions of a communicator that its NcclJob (comm/nccl/nccl_job.h) calls.
class JobMember {
 public:
  virtual ~JobMember() = default;

  // Ends the posted work of this communicator on the device of this rank. The results of this work
  // are invalid. Every later post(), test() and probe() throws UserError with the reason of the
  // failure. Thread-safe.
  virtual void giveUp(const std::string& why) noexcept = 0;
  // If a call of NCCL that may wait on the host for other ranks is running, returns its start time
  // in ns of the steady clock. Otherwise returns 0.
  virtual int64_t busySince() const = 0;
};

}  // namespace heddle::comm::nccl
