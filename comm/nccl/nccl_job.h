#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "comm/communicator.h"
#include "comm/nccl/nccl_call.h"

namespace heddle::comm::nccl {

class NcclCommunicator;

// What the world of a rank and its communicators share: whether the job goes on, and how it ends.
// Thread-safe.
class NcclJob : public std::enable_shared_from_this<NcclJob> {
 public:
  explicit NcclJob(std::shared_ptr<const World> bootstrap) : bootstrap_(std::move(bootstrap)) {}

  // Of this rank, or what the bootstrap has heard of the others; empty while all is well.
  std::string fault() const;
  void setFault(const std::string& reason);
  // For settle(); keeps the job alive.
  Fault asFault() {
    return [job = shared_from_this()] { return job->fault(); };
  }

  void add(NcclCommunicator* communicator);
  void remove(NcclCommunicator* communicator);

  // Gives up every communicator of the rank, all at once: an abort frees device memory, which waits
  // for the whole device, and so for kernels of another communicator that wait for the same peer.
  void giveUp(const std::string& why) noexcept;

 private:
  std::shared_ptr<const World> bootstrap_;
  mutable std::mutex fault_mutex_;
  std::string fault_;
  std::mutex members_mutex_;
  std::set<NcclCommunicator*> members_;
};

}  // namespace heddle::comm::nccl
