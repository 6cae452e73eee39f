#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "host/device/device.h"

namespace heddle::host {

class CpuStream;

// A point in a stream: the end of the first `tasks` tasks since the stream was created. A point
// stays valid as long as the device, because the device keeps its streams, and a reused stream
// continues to count.
struct StreamPoint {
  CpuStream* stream = nullptr;  // nullptr: the point is always passed
  uint64_t tasks = 0;
  bool passed() const;
};

// A piece of work on a stream. Only one thread at a time may call its functions.
class TaskBody {
 public:
  virtual ~TaskBody() = default;
  // Does the work, or checks whether the work is done. Returns false if poll() must be called again
  // later. Throws if the work has failed.
  virtual bool poll() = 0;
  // Is called instead of poll() after the run has failed. Returns false if skip() must be called
  // again later.
  virtual bool skip() { return true; }
  // Returns whether poll() waits for other ranks.
  virtual bool communicates() const { return false; }
  // Returns the point that must be passed before poll() is called.
  virtual StreamPoint waitsFor() const { return {}; }
};

// A queue entry. Queues reuse entries, and an entry stores its body in place, so that enqueuing
// allocates nothing.
class Task {
 public:
  static constexpr size_t kBytes = 128;

  template <class Body, class... Args>
  void emplace(const Issue& issue, Args&&... args) {
    static_assert(sizeof(Body) <= kBytes && alignof(Body) <= alignof(std::max_align_t));
    body_ = new (storage_) Body(std::forward<Args>(args)...);
    issue_ = issue;
    polled_ = false;
  }
  void destroy() {
    body_->~TaskBody();
    body_ = nullptr;
  }

  bool polled() const { return polled_; }
  StreamPoint waitsFor() const { return body_->waitsFor(); }
  // Polls once, and reports an error to the sink of the issue. Returns true if the task is done or
  // has failed.
  bool step() noexcept;

 private:
  bool poll() noexcept;

  alignas(std::max_align_t) std::byte storage_[kBytes];
  TaskBody* body_ = nullptr;
  Issue issue_;
  int64_t begun_ = 0;  // result of WorkObserver::begin()
  bool polled_ = false;
};

// A first-in, first-out queue. It never shrinks. The address of a queued task never changes.
class TaskQueue {
 public:
  bool empty() const { return size_ == 0; }
  Task& front() { return *ring_[head_]; }
  // Appends an entry, which the caller must fill with Task::emplace().
  Task& pushBack() {
    if (size_ == ring_.size()) grow();
    Task& entry = *ring_[(head_ + size_) % ring_.size()];
    ++size_;
    return entry;
  }
  void popFront() {
    head_ = (head_ + 1) % ring_.size();
    --size_;
  }

 private:
  void grow() {
    std::vector<std::unique_ptr<Task>> larger;
    const size_t capacity = ring_.empty() ? 16 : 2 * ring_.size();
    larger.reserve(capacity);
    for (size_t i = 0; i < size_; ++i) {
      larger.push_back(std::move(ring_[(head_ + i) % ring_.size()]));
    }
    while (larger.size() < capacity) larger.push_back(std::make_unique<Task>());
    ring_ = std::move(larger);
    head_ = 0;
  }

  std::vector<std::unique_ptr<Task>> ring_;
  size_t head_ = 0;
  size_t size_ = 0;
};

// Pauses between polls. Each pause is longer than the one before, up to a limit. Without pauses, a
// polled task would occupy the core that the awaited rank needs.
class Backoff {
 public:
  void pause();
  void reset() { rounds_ = 0; }

 private:
  int rounds_ = 0;
};

}  // namespace heddle::host
