#include "comm/nccl/nccl_job.h"

#include <fmt/format.h>

#include <chrono>
#include <vector>

#include "ir/base/error.h"

namespace heddle::comm::nccl {
namespace {

// Calls that are as short as they should be are never seen.
constexpr auto kLook = std::chrono::milliseconds(100);
// How long the others of the host are waited for to hear that this rank gives up: as soon as what
// it has posted ends, copy channels behind that bring them what is void.
constexpr auto kHear = std::chrono::seconds(1);
constexpr auto kVerdict = std::chrono::seconds(1);
constexpr auto kHearPoll = std::chrono::milliseconds(5);

void letHear(CopyChannelMember& seat, const std::string& why) {
  seat.giveUp(why);
  const auto end = std::chrono::steady_clock::now() + kHear;
  while (!seat.allKnow() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kHearPoll);
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
  std::shared_ptr<CopyChannelMember> seat;
  {
    std::lock_guard lock(fault_mutex_);
    if (!fault_.empty()) return fault_;
    seat = seat_;
  }
  std::string why = bootstrap_->fault();
  if (why.empty() && seat) why = seat->fault();
  return why;
}

void NcclJob::setFault(const std::string& reason) {
  std::lock_guard lock(fault_mutex_);
  if (fault_.empty()) fault_ = reason;
}

bool NcclJob::hasOwnWord() const {
  {
    std::lock_guard lock(fault_mutex_);
    if (!fault_.empty()) return true;
  }
  return !bootstrap_->fault().empty();
}

std::string NcclJob::verdict() {
  const auto end = std::chrono::steady_clock::now() + kVerdict;
  while (!hasOwnWord() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kHearPoll);
  }
  setFault(fault());  // nobody waits once more
  return fault();
}

void NcclJob::sit(std::shared_ptr<CopyChannelMember> seat) {
  {
    std::lock_guard lock(fault_mutex_);
    seat_ = std::move(seat);
  }
  std::lock_guard lock(members_mutex_);
  if (!watcher_.joinable()) watcher_ = std::thread([this] { watchCalls(); });
}

std::shared_ptr<CopyChannelMember> NcclJob::seat() const {
  std::lock_guard lock(fault_mutex_);
  return seat_;
}

void NcclJob::add(JobMember* communicator) {
  std::lock_guard lock(members_mutex_);
  HEDDLE_USER_CHECK(!gaveUp(), "{}", fault());
  if (!watcher_.joinable()) watcher_ = std::thread([this] { watchCalls(); });
  members_.insert(communicator);
}

void NcclJob::remove(JobMember* communicator) {
  std::lock_guard lock(members_mutex_);
  members_.erase(communicator);
}

void NcclJob::giveUp(const std::string& why) noexcept {
  const std::shared_ptr<CopyChannelMember> mine = seat();
  const bool follows = mine && !mine->fault().empty();
  if (!follows) setFault(why);
  gave_up_.store(true);
  // Once: who gives up behind that, as each communicator that ends does, waits for nobody again.
  if (mine) std::call_once(heard_, [&] { letHear(*mine, why); });
  std::lock_guard lock(members_mutex_);
  std::vector<std::thread> aborts;
  for (JobMember* member : members_) {
    try {
      aborts.emplace_back([member, &why] { member->giveUp(why); });
    } catch (const std::exception&) {  // no more threads: one after the other, as far as that goes
      member->giveUp(why);
    }
  }
  for (std::thread& one : aborts) one.join();
}

void NcclJob::watchCalls() {
  std::unique_lock lock(members_mutex_);
  while (!stop_.wait_for(lock, kLook, [this] { return stopping_; })) {
    const std::string why = whyOver();
    if (why.empty()) continue;
    lock.unlock();
    giveUp(why);
    lock.lock();
  }
}

std::string NcclJob::whyOver() {
  if (const std::shared_ptr<CopyChannelMember> mine = seat(); mine && !gaveUp()) {
    std::string why = mine->fault();
    if (!why.empty()) return why;
  }
  return whyInVain();
}

std::string NcclJob::whyInVain() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  for (const JobMember* member : members_) {
    const int64_t since = member->busySince();
    if (since == 0) continue;
    const auto waited = now - std::chrono::steady_clock::duration(since);
    if (waited < kLook) continue;
    std::string why = fault();
    if (why.empty() && waited > postDeadline()) {
      why = fmt::format("NCCL: no answer from the other ranks in {} s", postDeadline().count());
    }
    if (!why.empty()) return why;
  }
  return {};
}

}  // namespace heddle::comm::nccl
