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

// Runs the tasks of all streams of a device on one thread, for tests. If a program lacks a wait,
// the order of the tasks probably makes the test fail. The order is random with a given seed. The
// scheduler keeps the order within each stream, and begins no task before the point for which the
// task waits has been passed (StreamPoint in host/device/cpu/cpu_task.h).
// - The scheduler often runs many tasks of one stream in a row, and none of other streams.
// - The scheduler delays work as long as it can. Usually it runs tasks only while a host thread
//   waits for a point of a stream.
// - The scheduler also runs tasks if no task has been enqueued for some time. Otherwise another
//   rank, or a host thread that polls, could wait forever.
// - It also runs tasks if very many tasks are queued, or if its destructor is called.
// - In a process of one rank with one host thread, if tasks run only while this thread waits, the
//   order depends only on the seed and on the enqueued tasks.
// Thread-safe.
class AdversarialScheduler {
 public:
  explicit AdversarialScheduler(uint64_t seed);
  // Runs all queued tasks first. Requires that the streams still exist.
  ~AdversarialScheduler();

  // Adds a stream. The scheduler runs the tasks of this stream from now on.
  void add(CpuStream& stream);
  // Tells the scheduler that a task will be enqueued. Call this before the task is enqueued.
  void taskComes();
  // Shortens the time without new tasks after which the scheduler runs tasks (see the rules above).
  // The effect ends when no task is queued. Call this if a host thread polls, or if other ranks
  // depend on the work.
  void hurry();
  // Blocks the calling host thread until the stream has passed the point.
  void wait(const StreamPoint& point);

 private:
  struct Entry {
    CpuStream* stream;
    bool starved;  // true: a task of a stream that is not starved begins first, if there is one
  };
  using Clock = std::chrono::steady_clock;

  void serve();
  // Blocks until there is a reason to run a task. Returns false if the worker thread must end.
  bool awaitReason(std::unique_lock<std::mutex>& lock);
  // Wakes the host threads in wait() whose points have been passed.
  void releaseWaiters();
  // Polls the first task of one stream, if a stream has a task that may run. `fresh` contains the
  // streams whose first task may run but has not been polled yet. `begun` contains the streams
  // whose first task has been polled but is not done. Returns true if a task has finished.
  bool runOne(std::vector<Entry*>& fresh, std::vector<Entry*>& begun);
  // Returns the stream of `fresh` whose task runs next.
  Entry* pick(const std::vector<Entry*>& fresh);
  // Polls the first task of a stream. Returns whether the task has finished.
  bool step(CpuStream& stream);
  bool chance(uint64_t one_in) { return random_() % one_in == 0; }

  std::mutex mutex_;
  std::condition_variable reason_;    // the worker sleeps here
  std::condition_variable released_;  // host threads wait here
  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<StreamPoint> waiting_;  // the points for which host threads wait
  int64_t pending_ = 0;          // number of tasks announced by taskComes() that have not finished
  Clock::time_point last_came_;  // time of the latest taskComes()
  bool hurry_ = false;
  bool draining_ = false;  // true: tasks run until the next taskComes(), or until none is queued
  bool stop_ = false;

  // Only the worker thread uses the members below.
  std::mt19937_64 random_;
  Entry* burst_ = nullptr;   // the stream of the current burst, a series of tasks of one stream
  uint64_t burst_left_ = 0;  // number of tasks that remain in the burst
  size_t turn_ = 0;          // selects which started task to poll next
  Backoff backoff_;
  std::thread worker_;
};

}  // namespace heddle::host
