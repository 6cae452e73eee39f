#pragma once

#include <cstdint>
#include <string>

namespace heddle::comm::nccl {

// A communicator as its NcclJob sees it: what on the device waits for peers, and can be ended.
class JobMember {
 public:
  virtual ~JobMember() = default;

  // Any thread. What this rank has posted ends on the device, with results that nobody may read;
  // every later call throws UserError with `why`.
  virtual void giveUp(const std::string& why) noexcept = 0;
  // When the call that is under way and may wait for peers on the host began, in ns of the steady
  // clock; 0: there is none.
  virtual int64_t busySince() const = 0;
};

}  // namespace heddle::comm::nccl
