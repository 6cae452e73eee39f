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

// Runs all streams of a device on one thread, in an order that makes a test fail if a wait is
// missing. The order is random with a given seed. It respects only the waits of the tasks.
// - The scheduler runs many tasks of one stream in a row while it runs none of other streams.
// - It delays work as long as it can: it runs tasks only while a host thread waits for a point of a
//   stream (StreamPoint of host/device/cpu/cpu_task.h).
// - It also runs tasks if no task has been enqueued for some time, or if very many are queued.
//   Otherwise another rank, or a host thread that waits by other means, could wait forever.
// - The order depends only on the seed if there is one rank and its host waits for all work.
// Thread-safe.
class AdversarialScheduler {
 public:
  explicit AdversarialScheduler(uint64_t seed);
  // Runs all queued tasks. The streams must still exist.
  ~AdversarialScheduler();

  void add(CpuStream& stream);
  // Announces a task. Call this before the task is enqueued.
  void taskComes();
  // Shortens the idle time after which tasks run. Call this if a host thread polls, or if other
  // ranks depend on the work.
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
  // Polls one task. The first task of each stream in `fresh` has not been polled yet; the first
  // task of each stream in `begun` has. Returns whether the polled task finished.
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
  bool draining_ = false;  // the idle time has passed; tasks run until a task is announced
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
