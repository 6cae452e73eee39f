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

// A place in a stream's queue: behind the first `tasks` tasks it was ever given. Streams of a
// device live as long as the device and count on when they are reused, so a point stays valid.
struct StreamPoint {
  CpuStream* stream = nullptr;  // nullptr: a point that is always passed
  uint64_t tasks = 0;
  bool passed() const;
};

// One piece of work at the head of a stream. Polled by one thread at a time.
class TaskBody {
 public:
  virtual ~TaskBody() = default;
  // Does the work, or looks whether it is done; false: call again later. Throws its error.
  virtual bool poll() = 0;
  // Called in place of poll() once the run has failed; false: call again later.
  virtual bool skip() { return true; }
  // poll() waits for peers.
  virtual bool communicates() const { return false; }
  // poll() is not called before this point is passed.
  virtual StreamPoint waitsFor() const { return {}; }
};

// A slot of a queue, reused for ever: its body lives in place, so enqueuing allocates nothing.
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
  // Polls once and sends an error to the issue; true when done, well or badly.
  bool step() noexcept;

 private:
  bool poll() noexcept;

  alignas(std::max_align_t) std::byte storage_[kBytes];
  TaskBody* body_ = nullptr;
  Issue issue_;
  int64_t begun_ = 0;  // result of WorkObserver::begin()
  bool polled_ = false;
};

// First in, first out. Grows and never shrinks; a task stays where it is while it is queued.
class TaskQueue {
 public:
  bool empty() const { return size_ == 0; }
  Task& front() { return *ring_[head_]; }
  // The caller fills the slot.
  Task& pushBack() {
    if (size_ == ring_.size()) grow();
    Task& slot = *ring_[(head_ + size_) % ring_.size()];
    ++size_;
    return slot;
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

// Waits a little longer each time: a polled task must not keep a core from the rank it waits for.
class Backoff {
 public:
  void pause();
  void reset() { rounds_ = 0; }

 private:
  int rounds_ = 0;
};

}  // namespace heddle::host
