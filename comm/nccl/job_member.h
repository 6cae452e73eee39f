#pragma once

#include <cstdint>
#include <string>

namespace heddle::comm::nccl {

// The part of a communicator that its NcclJob (comm/nccl/nccl_job.h) calls.
class JobMember {
 public:
  virtual ~JobMember() = default;

  // Makes the posted work of this rank on the device end. Its results are invalid. Every later call
  // of the communicator throws UserError with `why`. Thread-safe.
  virtual void giveUp(const std::string& why) noexcept = 0;
  // Returns the start time of the current call, if it may wait on the host for other ranks. The
  // time is in ns of the steady clock. 0: there is no such call.
  virtual int64_t busySince() const = 0;
};

}  // namespace heddle::comm::nccl
