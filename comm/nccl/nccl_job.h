#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "comm/communicator.h"
#include "comm/nccl/copy_channel_table.h"
#include "comm/nccl/job_member.h"
#include "comm/nccl/nccl_call.h"

namespace heddle::comm::nccl {

// The state that the World of a rank shares with its communicators: whether the job has failed, and
// how its communicators end. From the first communicator on, a thread aborts all communicators of
// the rank if an NCCL call would wait on the host for other ranks for ever: the job has failed, or
// postDeadline() has passed. If ranks may have copy channels, the thread also sees within 0.1 s
// that a rank of the host gave up. Thread-safe.
class NcclJob : public std::enable_shared_from_this<NcclJob> {
 public:
  explicit NcclJob(std::shared_ptr<const World> bootstrap) : bootstrap_(std::move(bootstrap)) {}
  ~NcclJob();

  // Returns the failure of this rank, or the failure of another rank that the bootstrap World or
  // the table of copy channels reports. Empty: no failure.
  std::string fault() const;
  void setFault(const std::string& reason);
  // Returns fault() after a failure, for the error that a caller throws next. If only the table of
  // copy channels reports the failure, it waits up to 1 s, until the job knows which rank to blame.
  std::string finalFault();
  // Returns a function for settle(), which keeps this object alive.
  FaultText asFault() {
    return [job = shared_from_this()] { return job->fault(); };
  }

  // Declares that the rank may have copy channels from now on.
  void setCopyChannelMember(std::shared_ptr<CopyChannelMember> member);
  // Returns nullptr before setCopyChannelMember().
  std::shared_ptr<CopyChannelMember> copyChannelMember() const;

  // Throws UserError if the rank has given up.
  void add(JobMember* communicator);
  void remove(JobMember* communicator);

  // Aborts all communicators of the rank at the same time. An abort frees device memory, which
  // waits for the whole device, and so for kernels of another communicator that wait for the same
  // rank.
  void giveUp(const std::string& why) noexcept;
  // Returns true from before the first kernel ends.
  bool gaveUp() const { return gave_up_.load(); }

 private:
  std::shared_ptr<const World> bootstrap_;
  mutable std::mutex fault_mutex_;  // guards the next two
  std::string fault_;
  std::shared_ptr<CopyChannelMember> copy_channel_member_;
  bool hasJobFault() const;  // not only the table of copy channels reports a failure
  void watchCalls();
  std::string reasonToGiveUp();     // empty: none
  std::string reasonOfStuckCall();  // empty: no call waits for ever

  std::atomic<bool> gave_up_{false};
  std::once_flag others_informed_;  // giveUpTogether() was called
  std::mutex members_mutex_;
  std::set<JobMember*> members_;
  std::condition_variable stop_;  // with members_mutex_
  bool stopping_ = false;
  std::thread watcher_;
};

}  // namespace heddle::comm::nccl
