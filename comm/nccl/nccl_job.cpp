#include "comm/nccl/nccl_job.h"

#include <thread>
#include <vector>

#include "comm/nccl/nccl_communicator.h"

namespace heddle::comm::nccl {

std::string NcclJob::fault() const {
  {
    std::lock_guard lock(fault_mutex_);
    if (!fault_.empty()) return fault_;
  }
  return bootstrap_->fault();
}

void NcclJob::setFault(const std::string& reason) {
  std::lock_guard lock(fault_mutex_);
  if (fault_.empty()) fault_ = reason;
}

void NcclJob::add(NcclCommunicator* communicator) {
  std::lock_guard lock(members_mutex_);
  members_.insert(communicator);
}

void NcclJob::remove(NcclCommunicator* communicator) {
  std::lock_guard lock(members_mutex_);
  members_.erase(communicator);
}

void NcclJob::giveUp(const std::string& why) noexcept {
  setFault(why);
  std::lock_guard lock(members_mutex_);
  std::vector<std::thread> aborts;
  for (NcclCommunicator* member : members_) {
    aborts.emplace_back([member, &why] { member->giveUp(why); });
  }
  for (std::thread& one : aborts) one.join();
}

}  // namespace heddle::comm::nccl
