#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "host/device/cpu/cpu_task.h"

namespace heddle::host {

class AdversarialScheduler;

// A queue of tasks that run one after the other. Without a scheduler a thread of its own serves it,
// so a blocked stream blocks no other; with one, the scheduler's worker does.
class CpuStream {
 public:
  explicit CpuStream(AdversarialScheduler* scheduler);
  // What is queued runs first.
  ~CpuStream();
  CpuStream(const CpuStream&) = delete;
  CpuStream& operator=(const CpuStream&) = delete;

  template <class Body, class... Args>
  void enqueue(const Issue& issue, Args&&... args) {
    announce();
    {
      std::lock_guard lock(mutex_);
      queue_.pushBack().emplace<Body>(issue, std::forward<Args>(args)...);
      ++enqueued_;
    }
    ready_.notify_one();
  }

  // Behind all that has been enqueued.
  StreamPoint end();
  bool passed(uint64_t tasks) const { return completed_.load(std::memory_order_acquire) >= tasks; }
  // Blocks the calling thread.
  void wait(uint64_t tasks);

  // Memory for the bytes of a task, kept for the next one.
  std::vector<std::byte> buffer(const void* bytes, size_t count);
  void recycle(std::vector<std::byte> buffer) noexcept;

  // For the scheduler. The head, or nullptr; only the thread that serves the stream uses it.
  Task* head();
  void finishHead(Task& task);

 private:
  void announce();  // tells the scheduler, if there is one, that a task comes
  void serve();

  AdversarialScheduler* scheduler_;
  std::mutex mutex_;
  std::condition_variable ready_;  // a task came, or stop_
  std::condition_variable done_;   // a task was finished while somebody waits
  TaskQueue queue_;
  std::vector<std::vector<std::byte>> spare_;
  size_t buffers_ = 0;  // made so far: no more than were ever queued at one time
  uint64_t enqueued_ = 0;
  std::atomic<uint64_t> completed_{0};
  int waiting_ = 0;
  bool stop_ = false;
  std::thread worker_;
};

inline bool StreamPoint::passed() const { return stream == nullptr || stream->passed(tasks); }

}  // namespace heddle::host
