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

// The state that the NCCL World of a rank shares with its communicators: whether the job has
// failed, and whether the rank has given up, which means that it aborts its communicators. After
// the first communicator is added, a thread watches the calls that may wait on the host for other
// ranks. It aborts all communicators of the rank if the job fails during such a call, or if the
// call takes longer than postDeadline(). If the rank may have copy channels, the thread also aborts
// them within 0.1 s after another rank of the host has given up. Thread-safe.
class NcclJob : public std::enable_shared_from_this<NcclJob> {
 public:
  explicit NcclJob(std::shared_ptr<const World> bootstrap) : bootstrap_(std::move(bootstrap)) {}
  ~NcclJob();

  // Returns the failure of this rank, or the failure of another rank that the bootstrap World or
  // the table of copy channels (CopyChannelTable) reports. Empty: no failure.
  std::string fault() const;
  void setFault(const std::string& reason);
  // Returns the text of the error that a caller throws after a failure. It is fault(), but if only
  // the table of copy channels reports a failure, the function waits up to 1 s until the job also
  // reports which rank to blame.
  std::string finalFault();
  // Returns fault() as a function, for settle(). The function keeps this object alive.
  FaultText asFault() {
    return [job = shared_from_this()] { return job->fault(); };
  }

  // Declares that the rank may have copy channels from now on.
  void setCopyChannelMember(std::shared_ptr<CopyChannelMember> member);
  // Returns nullptr before setCopyChannelMember().
  std::shared_ptr<CopyChannelMember> copyChannelMember() const;

  // Adds a communicator, which giveUp() will abort. Throws UserError if the rank has given up.
  void add(JobMember* communicator);
  void remove(JobMember* communicator);

  // Aborts all communicators of the rank at the same time. One after the other would not work: an
  // abort frees device memory, and so waits for all work of the device. That includes kernels of
  // the other communicators, which wait for the same failed rank.
  void giveUp(const std::string& why) noexcept;
  // Returns whether giveUp() was called. It returns true before giveUp() ends the first kernel.
  bool gaveUp() const { return gave_up_.load(); }

 private:
  std::shared_ptr<const World> bootstrap_;
  mutable std::mutex fault_mutex_;  // guards the next two
  std::string fault_;
  std::shared_ptr<CopyChannelMember> copy_channel_member_;
  bool hasJobFault() const;  // this rank or the bootstrap World reports a failure
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
