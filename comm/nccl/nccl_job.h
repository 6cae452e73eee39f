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

// The state that the NCCL World of a rank shares with its communicators: the failure of the job,
// if there is one, and whether the rank has given up. A rank gives up by aborting all of its
// communicators. Thread-safe.
//
// The first call of add() or setCopyChannelMember() starts a thread, which watches the NCCL calls
// that may wait on the host for other ranks. The thread makes the rank give up in three cases:
// - The job has failed, and one of these calls has been running for at least 0.1 s.
// - One of these calls takes longer than postDeadline() (comm/nccl/nccl_call.h).
// - The rank may have copy channels (Carrier::copy_channel in comm/communicator.h), and another
//   rank of the machine has given up. The thread detects this within 0.1 s.
class NcclJob : public std::enable_shared_from_this<NcclJob> {
 public:
  explicit NcclJob(std::shared_ptr<const World> bootstrap) : bootstrap_(std::move(bootstrap)) {}
  ~NcclJob();

  // Returns the failure that setFault() has stored, or the failure that the bootstrap World or the
  // table of copy channels (CopyChannelTable) reports. An empty text means no failure. The
  // bootstrap World is the World on host memory that the NCCL World uses.
  std::string fault() const;
  // Stores the failure of the job. Only the first call has an effect.
  void setFault(const std::string& reason);
  // Returns fault(), for the error that a caller throws after a failure. If so far only the table
  // of copy channels reports a failure, the function first waits up to 1 s for a failure of the
  // job. Only the text of a failure of the job names the rank to blame.
  std::string finalFault();
  // Returns a function that calls fault(), for example for settle() (comm/nccl/nccl_call.h). The
  // function keeps this object alive.
  FaultText asFault() {
    return [job = shared_from_this()] { return job->fault(); };
  }

  // Declares that the rank may have copy channels from now on.
  void setCopyChannelMember(std::shared_ptr<CopyChannelMember> member);
  // Returns the argument of setCopyChannelMember(), or nullptr before that call.
  std::shared_ptr<CopyChannelMember> copyChannelMember() const;

  // Adds a communicator to the communicators that giveUp() aborts. Throws UserError if the rank has
  // given up.
  void add(JobMember* communicator);
  void remove(JobMember* communicator);

  // Makes the rank give up because of `why`. If the rank may have copy channels, the first call
  // reports this in the CopyChannelTable, and waits up to 1 s until the other ranks of the machine
  // have given up too. Then aborts all communicators of the rank at the same time. Aborting them
  // one by one would deadlock: an abort frees device memory, which waits for the kernels of all
  // communicators. The kernels of the communicators that are still to be aborted would never end.
  void giveUp(const std::string& why) noexcept;
  // Returns whether giveUp() was called. The result becomes true before the first communicator is
  // aborted.
  bool gaveUp() const { return gave_up_.load(); }

 private:
  std::shared_ptr<const World> bootstrap_;
  mutable std::mutex fault_mutex_;  // guards the next two members
  std::string fault_;
  std::shared_ptr<CopyChannelMember> copy_channel_member_;
  bool hasJobFault() const;  // setFault() was called, or the bootstrap World reports a failure
  void watchCalls();
  std::string reasonToGiveUp();     // why the rank should give up; empty: no reason
  std::string reasonOfStuckCall();  // why a running call should end; empty: no reason

  std::atomic<bool> gave_up_{false};
  std::once_flag others_informed_;  // giveUp() informs the other ranks of the machine only once
  std::mutex members_mutex_;
  std::set<JobMember*> members_;
  std::condition_variable stop_;  // used with members_mutex_
  bool stopping_ = false;
  std::thread watcher_;
};

}  // namespace heddle::comm::nccl
