#pragma once

#include <cstdint>
#include <string>

namespace heddle::comm::nccl {

// A communicator, as its NcclJob uses it.
class JobMember {
 public:
  virtual ~JobMember() = default;

  // Ends the posted work of this rank on the device, with invalid results. Every later call throws
  // UserError with `why`. Thread-safe.
  virtual void giveUp(const std::string& why) noexcept = 0;
  // Returns when the running call that may wait on the host for other ranks began, in ns of the
  // steady clock; 0: no such call.
  virtual int64_t busySince() const = 0;
};

}  // namespace heddle::comm::nccl
