#include "host/device/cpu/adversarial_scheduler.h"

#include <algorithm>
#include <limits>

#include "ir/system/start_thread.h"

namespace heddle::host {
namespace {

using std::chrono::milliseconds;

// Tasks run if no task has been enqueued for this time: kShortIdle if hurry() was called, otherwise
// kLongIdle. Both times are longer than the usual time between two tasks of a busy host thread, and
// much shorter than a test.
constexpr milliseconds kShortIdle{2};
constexpr milliseconds kLongIdle{50};
// Tasks also run if more tasks than this are queued, even if the host never waits.
constexpr int64_t kMostPending = 1 << 14;
constexpr uint64_t kShortBurst = 8;  // limit of the length of most bursts (see pick())

}  // namespace

AdversarialScheduler::AdversarialScheduler(uint64_t seed)
    : last_came_(Clock::now()),
      random_(seed),
      worker_(startThread("the adversarial scheduler", [this] { serve(); })) {}

AdversarialScheduler::~AdversarialScheduler() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  reason_.notify_one();
  worker_.join();
}

void AdversarialScheduler::add(CpuStream& stream) {
  std::lock_guard lock(mutex_);
  entries_.push_back(std::make_unique<Entry>(Entry{&stream, false}));
}

void AdversarialScheduler::taskComes() {
  {
    std::lock_guard lock(mutex_);
    ++pending_;
    last_came_ = Clock::now();
    draining_ = false;
  }
  reason_.notify_one();
}

void AdversarialScheduler::hurry() {
  {
    std::lock_guard lock(mutex_);
    hurry_ = true;
  }
  reason_.notify_one();
}

void AdversarialScheduler::wait(const StreamPoint& point) {
  std::unique_lock lock(mutex_);
  if (point.passed()) return;
  waiting_.push_back(point);
  reason_.notify_one();
  released_.wait(lock, [&] { return point.passed(); });
}

bool AdversarialScheduler::awaitReason(std::unique_lock<std::mutex>& lock) {
  for (;;) {
    if (!waiting_.empty()) return true;
    if (pending_ == 0) {
      draining_ = false;
      hurry_ = false;
      if (stop_) return false;
      reason_.wait(lock);
      continue;
    }
    if (stop_ || draining_ || pending_ > kMostPending) return true;
    const auto until = last_came_ + (hurry_ ? kShortIdle : kLongIdle);
    if (Clock::now() >= until) {
      draining_ = true;
      return true;
    }
    reason_.wait_until(lock, until);
  }
}

void AdversarialScheduler::releaseWaiters() {
  const auto passed = [](const StreamPoint& point) { return point.passed(); };
  if (std::erase_if(waiting_, passed) > 0) released_.notify_all();
}

// The loop of the worker thread. The mutex is not locked while a task runs. Host threads can
// therefore enqueue work meanwhile, and so can the destructor of a task, for example when it frees
// memory.
void AdversarialScheduler::serve() {
  std::vector<Entry*> fresh;
  std::vector<Entry*> begun;
  std::unique_lock lock(mutex_);
  while (awaitReason(lock)) {
    fresh.clear();
    begun.clear();
    for (const std::unique_ptr<Entry>& entry : entries_) {
      Task* task = entry->stream->head();
      if (task == nullptr || !task->waitsFor().passed()) continue;
      (task->polled() ? begun : fresh).push_back(entry.get());
    }
    lock.unlock();
    const bool finished = runOne(fresh, begun);
    if (finished) {
      backoff_.reset();
    } else if (fresh.empty()) {
      backoff_.pause();
    }
    lock.lock();
    if (finished) --pending_;
    releaseWaiters();
  }
}

bool AdversarialScheduler::step(CpuStream& stream) {
  Task* task = stream.head();
  if (!task->step()) return false;
  stream.finishHead(*task);
  return true;
}

bool AdversarialScheduler::runOne(std::vector<Entry*>& fresh, std::vector<Entry*>& begun) {
  // The started tasks are polled one after another, so that all running collectives make progress.
  if (!begun.empty() && (fresh.empty() || chance(8))) {
    return step(*begun[turn_++ % begun.size()]->stream);
  }
  return !fresh.empty() && step(*pick(fresh)->stream);
}

// A burst is a series of tasks of one stream. This function continues or starts a burst:
// - If the current burst can continue, the function returns the stream of the burst. It can
//   continue if its stream is in `fresh` and burst_left_ is positive.
// - Otherwise the function starts a burst on a random stream of `fresh` that is not starved, or on
//   any stream of `fresh` if all of them are starved.
// - In half of the cases, before the function starts a burst, it selects at random which streams of
//   `fresh` are starved.
// - A third of the bursts have no limit of length.
AdversarialScheduler::Entry* AdversarialScheduler::pick(const std::vector<Entry*>& fresh) {
  const bool can_continue = std::find(fresh.begin(), fresh.end(), burst_) != fresh.end();
  if (can_continue && burst_left_ > 0) {
    --burst_left_;
    return burst_;
  }
  if (chance(2)) {
    for (Entry* entry : fresh) entry->starved = chance(2);
  }
  const auto fed = [](const Entry* entry) { return !entry->starved; };
  const size_t fed_count = std::count_if(fresh.begin(), fresh.end(), fed);
  size_t chosen = random_() % (fed_count > 0 ? fed_count : fresh.size());
  burst_ = fresh[0];
  for (Entry* entry : fresh) {
    if (fed_count > 0 && entry->starved) continue;
    burst_ = entry;
    if (chosen-- == 0) break;
  }
  burst_left_ = chance(3) ? std::numeric_limits<uint64_t>::max() : random_() % kShortBurst;
  return burst_;
}

}  // namespace heddle::host
