#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "host/device/cpu/cpu_stream.h"

namespace heddle::host {

// Runs all streams of a device on one thread, so that a missing wait makes a test fail. A seed
// decides the order; only the waits of the tasks restrict it.
// - It runs long bursts of one stream while it starves others.
// - It delays work as long as it can: it runs tasks only while a host thread waits for a point.
// - It also runs tasks if no task has been enqueued for some time, or if very many are queued.
//   Otherwise another rank, or a host thread that waits by other means, could wait forever.
// - With one rank, and a host that waits for its work, the order depends only on the seed.
// Thread-safe.
class AdversarialScheduler {
 public:
  explicit AdversarialScheduler(uint64_t seed);
  // Runs all queued tasks. The streams must still exist.
  ~AdversarialScheduler();

  void add(CpuStream& stream);
  // Must be called before a task is enqueued.
  void taskComes();
  // Shortens the idle time after which tasks run. For a host thread that polls, or for work that
  // other ranks depend on.
  void hurry();
  // Blocks a host thread until the point is passed.
  void wait(const StreamPoint& point);

 private:
  struct Entry {
    CpuStream* stream;
    bool starved;
  };
  using Clock = std::chrono::steady_clock;

  void serve();
  // Blocks until there is a reason to run a task. Returns false if the worker must end.
  bool awaitReason(std::unique_lock<std::mutex>& lock);
  void releaseWaiters();
  // Polls one task. `fresh` are streams whose first task was not polled yet, `begun` the others.
  // Returns whether the task finished.
  bool runOne(std::vector<Entry*>& fresh, std::vector<Entry*>& begun);
  Entry* pick(const std::vector<Entry*>& fresh);
  bool step(CpuStream& stream);
  bool chance(uint64_t one_in) { return random_() % one_in == 0; }

  std::mutex mutex_;
  std::condition_variable reason_;    // the worker sleeps here
  std::condition_variable released_;  // host threads wait here
  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<StreamPoint> waiting_;
  int64_t pending_ = 0;
  Clock::time_point last_came_;
  bool hurry_ = false;
  bool draining_ = false;  // no task came for the idle time; run until one comes
  bool stop_ = false;

  // Only the worker uses these.
  std::mt19937_64 random_;
  Entry* burst_ = nullptr;
  uint64_t burst_left_ = 0;
  size_t turn_ = 0;
  Backoff backoff_;
  std::thread worker_;
};

}  // namespace heddle::host
