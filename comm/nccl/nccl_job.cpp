#include "comm/nccl/nccl_job.h"

#include <fmt/format.h>

#include <chrono>
#include <vector>

#include "ir/base/check.h"
#include "ir/system/start_thread.h"

namespace heddle::comm::nccl {
namespace {

// The polling interval of watchCalls(). Calls shorter than this time are ignored.
constexpr auto kPollTime = std::chrono::milliseconds(100);
// A rank that gives up waits at most for this time until the other ranks of its machine have given
// up too. After that it ends its posted work, and its copy channels may then send invalid data to
// the other ranks.
constexpr auto kInform = std::chrono::seconds(1);
// The longest time for which finalFault() waits.
constexpr auto kFinalFault = std::chrono::seconds(1);
constexpr auto kInformPoll = std::chrono::milliseconds(5);

void giveUpTogether(CopyChannelMember& member, const std::string& why) {
  member.giveUp(why);
  const auto end = std::chrono::steady_clock::now() + kInform;
  while (!member.allKnow() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kInformPoll);
  }
}

}  // namespace

NcclJob::~NcclJob() {
  {
    std::lock_guard lock(members_mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  if (watcher_.joinable()) watcher_.join();
}

std::string NcclJob::fault() const {
  std::shared_ptr<CopyChannelMember> member;
  {
    std::lock_guard lock(fault_mutex_);
    if (!fault_.empty()) return fault_;
    member = copy_channel_member_;
  }
  std::string why = bootstrap_->fault();
  if (why.empty() && member) why = member->fault();
  return why;
}

void NcclJob::setFault(const std::string& reason) {
  std::lock_guard lock(fault_mutex_);
  if (fault_.empty()) fault_ = reason;
}

bool NcclJob::hasJobFault() const {
  {
    std::lock_guard lock(fault_mutex_);
    if (!fault_.empty()) return true;
  }
  return !bootstrap_->fault().empty();
}

std::string NcclJob::finalFault() {
  const auto end = std::chrono::steady_clock::now() + kFinalFault;
  while (!hasJobFault() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kInformPoll);
  }
  setFault(fault());  // so that later calls do not wait
  return fault();
}

void NcclJob::setCopyChannelMember(std::shared_ptr<CopyChannelMember> member) {
  {
    std::lock_guard lock(fault_mutex_);
    copy_channel_member_ = std::move(member);
  }
  std::lock_guard lock(members_mutex_);
  if (!watcher_.joinable()) watcher_ = startThread("NCCL", [this] { watchCalls(); });
}

std::shared_ptr<CopyChannelMember> NcclJob::copyChannelMember() const {
  std::lock_guard lock(fault_mutex_);
  return copy_channel_member_;
}

void NcclJob::add(JobMember* communicator) {
  std::lock_guard lock(members_mutex_);
  HEDDLE_USER_CHECK(!gaveUp(), "{}", fault());
  if (!watcher_.joinable()) watcher_ = startThread("NCCL", [this] { watchCalls(); });
  members_.insert(communicator);
}

void NcclJob::remove(JobMember* communicator) {
  std::lock_guard lock(members_mutex_);
  members_.erase(communicator);
}

// Records the failure in this object and in the table of copy channels before it aborts a
// communicator. After the abort, streams may continue with invalid data, and a later probe() must
// find the failure.
void NcclJob::giveUp(const std::string& why) noexcept {
  const std::shared_ptr<CopyChannelMember> mine = copyChannelMember();
  const bool follows = mine && !mine->fault().empty();
  if (!follows) setFault(why);
  gave_up_.store(true);
  // Later calls of giveUp(), for example by the destructors of communicators, must not wait for
  // the other ranks again.
  if (mine) std::call_once(others_informed_, [&] { giveUpTogether(*mine, why); });
  std::lock_guard lock(members_mutex_);
  std::vector<std::thread> aborts;
  for (JobMember* member : members_) {
    try {
      aborts.emplace_back([member, &why] { member->giveUp(why); });
    } catch (const std::exception&) {  // no thread can be created: aborts one after the other
      member->giveUp(why);
    }
  }
  for (std::thread& one : aborts) one.join();
}

void NcclJob::watchCalls() {
  std::unique_lock lock(members_mutex_);
  while (!stop_.wait_for(lock, kPollTime, [this] { return stopping_; })) {
    const std::string why = reasonToGiveUp();
    if (why.empty()) continue;
    lock.unlock();
    giveUp(why);
    lock.lock();
  }
}

std::string NcclJob::reasonToGiveUp() {
  if (const std::shared_ptr<CopyChannelMember> mine = copyChannelMember(); mine && !gaveUp()) {
    std::string why = mine->fault();
    if (!why.empty()) return why;
  }
  return reasonOfStuckCall();
}

std::string NcclJob::reasonOfStuckCall() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  for (const JobMember* member : members_) {
    const int64_t since = member->busySince();
    if (since == 0) continue;
    const auto waited = now - std::chrono::steady_clock::duration(since);
    if (waited < kPollTime) continue;
    std::string why = fault();
    if (why.empty() && waited > postDeadline()) {
      why = fmt::format("NCCL: no answer from the other ranks in {} s", postDeadline().count());
    }
    if (!why.empty()) return why;
  }
  return {};
}

}  // namespace heddle::comm::nccl
