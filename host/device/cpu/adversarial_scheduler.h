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

// Runs all streams of a device on one thread, in an order that a seed decides and that only tasks'
// own waits restrict: long bursts of one stream, while others are starved. It puts work off as long
// as it can: until a host thread waits, then until that wait is over. With one rank and a host that
// waits for its work the order depends on the seed alone. So that no peer, and no host thread that
// waits by other means, waits forever, it also runs when no work has come for a while.
class AdversarialScheduler {
 public:
  explicit AdversarialScheduler(uint64_t seed);
  // Runs what is queued. The streams are still there.
  ~AdversarialScheduler();

  void add(CpuStream& stream);
  // A task is about to be enqueued.
  void taskComes();
  // Somebody outside looks whether work is done, or a peer depends on it: idle times get short.
  void hurry();
  // Blocks a host thread until the point is passed.
  void wait(const StreamPoint& point);

 private:
  struct Entry {
    CpuStream* stream;
    bool starved;
  };
  using VectorClock = std::chrono::steady_clock;

  void serve();
  // Blocks until there is a reason to run a task; false: the end.
  bool awaitReason(std::unique_lock<std::mutex>& lock);
  void releaseWaiters();
  // Polls one task; true when that finished one.
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
  VectorClock::time_point last_came_;
  bool hurry_ = false;
  bool draining_ = false;
  bool stop_ = false;

  // The worker's own.
  std::mt19937_64 random_;
  Entry* burst_ = nullptr;
  uint64_t burst_left_ = 0;
  size_t turn_ = 0;
  Backoff backoff_;
  std::thread worker_;
};

}  // namespace heddle::host
