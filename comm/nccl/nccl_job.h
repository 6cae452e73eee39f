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

// What the world of a rank and its communicators share: whether the job goes on, and how it ends. A
// thread of its own, from the first communicator on, gives all of them up when a call of NCCL's
// that waits for peers on the host would wait in vain: the job has failed, or the deadline has
// passed (postDeadline()). Where ranks may have copy channels it also hears, within a tenth of a
// second, of a rank of the host that has given up. Thread-safe.
class NcclJob : public std::enable_shared_from_this<NcclJob> {
 public:
  explicit NcclJob(std::shared_ptr<const World> bootstrap) : bootstrap_(std::move(bootstrap)) {}
  ~NcclJob();

  // Of this rank, or what the bootstrap or the table of copy channels has heard of the others;
  // empty while all is well.
  std::string fault() const;
  void setFault(const std::string& reason);
  // The same once something has failed, for who says so next. Where only the table of copy channels
  // has it, a moment is given to the rank that has given up to tell the job, which then knows who
  // is to blame.
  std::string verdict();
  // For settle(); keeps the job alive.
  FaultText asFault() {
    return [job = shared_from_this()] { return job->fault(); };
  }

  // From here on the rank may have copy channels.
  void sit(std::shared_ptr<CopyChannelMember> seat);
  // Nullptr before sit().
  std::shared_ptr<CopyChannelMember> seat() const;

  // UserError when the rank has given up.
  void add(JobMember* communicator);
  void remove(JobMember* communicator);

  // Gives up every communicator of the rank, all at once: an abort frees device memory, which waits
  // for the whole device, and so for kernels of another communicator that wait for the same peer.
  void giveUp(const std::string& why) noexcept;
  // From before the first kernel is ended.
  bool gaveUp() const { return gave_up_.load(); }

 private:
  std::shared_ptr<const World> bootstrap_;
  mutable std::mutex fault_mutex_;  // guards the next two
  std::string fault_;
  std::shared_ptr<CopyChannelMember> seat_;
  bool hasOwnWord() const;  // fault() is not what the table says
  void watchCalls();
  std::string whyOver();    // empty: go on
  std::string whyInVain();  // empty: no call waits, or its peers may come yet

  std::atomic<bool> gave_up_{false};
  std::once_flag heard_;  // the host's ranks have been told of that
  std::mutex members_mutex_;
  std::set<JobMember*> members_;
  std::condition_variable stop_;  // with members_mutex_
  bool stopping_ = false;
  std::thread watcher_;
};

}  // namespace heddle::comm::nccl
