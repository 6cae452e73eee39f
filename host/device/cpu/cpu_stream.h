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

// A queue of tasks that run one after another. Without an AdversarialScheduler, each stream has its
// own thread, so that a blocked stream does not block other streams. With a scheduler, the thread
// of the scheduler runs the tasks.
//
// Threads: enqueue(), end(), passed(), wait(), buffer() and recycle() are thread-safe. Only the
//          thread that runs the tasks may call head() and finishHead().
class CpuStream {
 public:
  // - `scheduler`: nullptr means that the stream has its own thread.
  explicit CpuStream(AdversarialScheduler* scheduler);
  // If the stream has its own thread, the destructor first waits until this thread has run all
  // queued tasks.
  ~CpuStream();
  CpuStream(const CpuStream&) = delete;
  CpuStream& operator=(const CpuStream&) = delete;

  // Appends a task whose body is Body(args...), a TaskBody.
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

  // Returns the point after all tasks that have been enqueued.
  StreamPoint end();
  // Returns whether the first `tasks` tasks since the stream was created are done.
  bool passed(uint64_t tasks) const { return completed_.load(std::memory_order_acquire) >= tasks; }
  // Blocks the calling thread until passed(tasks) is true.
  void wait(uint64_t tasks);

  // Returns a buffer with a copy of the bytes. Uses memory that was passed to recycle(), if there
  // is any.
  std::vector<std::byte> buffer(const void* bytes, size_t count);
  // Takes back a buffer that buffer() returned, for later use.
  void recycle(std::vector<std::byte> buffer) noexcept;

  // Returns the first task, or nullptr if the queue is empty.
  Task* head();
  // Destroys `task`, which must be the first task, and removes it.
  void finishHead(Task& task);

 private:
  void announce();  // tells the scheduler, if there is one, that a task will be enqueued
  void serve();     // the loop of the stream's own thread

  AdversarialScheduler* scheduler_;
  std::mutex mutex_;
  std::condition_variable ready_;  // notified when a task was enqueued or stop_ was set
  std::condition_variable done_;   // notified when a task has finished and a thread is in wait()
  TaskQueue queue_;
  std::vector<std::vector<std::byte>> spare_;  // recycled buffers
  size_t buffers_ = 0;                         // number of buffers created so far
  uint64_t enqueued_ = 0;                      // number of tasks enqueued so far
  std::atomic<uint64_t> completed_{0};         // number of tasks finished so far
  int waiting_ = 0;                            // number of threads that wait for done_
  bool stop_ = false;
  std::thread worker_;
};

inline bool StreamPoint::passed() const { return stream == nullptr || stream->passed(tasks); }

}  // namespace heddle::host
