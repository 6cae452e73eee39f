#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "comm/communicator.h"
#include "comm/nccl/job_member.h"
#include "comm/nccl/nccl_call.h"

namespace heddle::comm::nccl {

// What the world of a rank and its communicators share: whether the job goes on, and how it ends. A
// thread of its own, from the first communicator on, gives all of them up when a call of NCCL's
// that waits for peers on the host would wait in vain: the job has failed, or the deadline has
// passed (postDeadline()). Thread-safe.
class NcclJob : public std::enable_shared_from_this<NcclJob> {
 public:
  explicit NcclJob(std::shared_ptr<const World> bootstrap) : bootstrap_(std::move(bootstrap)) {}
  ~NcclJob();

  // Of this rank, or what the bootstrap has heard of the others; empty while all is well.
  std::string fault() const;
  void setFault(const std::string& reason);
  // For settle(); keeps the job alive.
  Fault asFault() {
    return [job = shared_from_this()] { return job->fault(); };
  }

  void add(JobMember* communicator);
  void remove(JobMember* communicator);

  // Gives up every communicator of the rank, all at once: an abort frees device memory, which waits
  // for the whole device, and so for kernels of another communicator that wait for the same peer.
  void giveUp(const std::string& why) noexcept;
  // From before the first kernel is ended.
  bool gaveUp() const { return gave_up_.load(); }

 private:
  std::shared_ptr<const World> bootstrap_;
  mutable std::mutex fault_mutex_;
  std::string fault_;
  void watchCalls();
  std::string whyInVain();  // empty: no call waits, or its peers may come yet

  std::atomic<bool> gave_up_{false};
  std::mutex members_mutex_;
  std::set<JobMember*> members_;
  std::condition_variable stop_;  // with members_mutex_
  bool stopping_ = false;
  std::thread watcher_;
};

}  // namespace heddle::comm::nccl
