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

// A point in a stream: the end of task number `tasks`, counted from 1 since the stream was created.
// A stream has passed the point when this task and all earlier ones are done. A point is valid as
// long as the device exists. The device does not delete a destroyed stream; a later createStream()
// returns it again, and its task count continues.
struct StreamPoint {
  CpuStream* stream = nullptr;  // nullptr: passed() returns true
  uint64_t tasks = 0;
  bool passed() const;
};

// The work of a task. Only one thread at a time may call the functions of a body.
class TaskBody {
 public:
  virtual ~TaskBody() = default;
  // Performs the work, starts it, or checks whether it is done. Returns whether the work is done.
  // If it is not done, the stream calls poll() again. Throws if the work has failed.
  virtual bool poll() = 0;
  // Ends the task without doing the rest of its work. After the run has failed, the stream calls
  // skip() instead of poll(), even if poll() has started the work. Returns false if skip() must be
  // called again.
  virtual bool skip() { return true; }
  // Returns whether the work is a group of communication operations.
  virtual bool communicates() const { return false; }
  // Returns the point that must be passed before the first call of poll() or skip().
  virtual StreamPoint waitsFor() const { return {}; }
};

// A task: an entry of a TaskQueue. A Task contains the memory of its body, and a queue reuses its
// Tasks. Enqueuing therefore allocates memory only when the queue becomes longer than ever before.
class Task {
 public:
  static constexpr size_t kBytes = 128;  // largest size of a body

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

  // Returns whether step() was called.
  bool polled() const { return polled_; }
  StreamPoint waitsFor() const { return body_->waitsFor(); }
  // Calls poll() or skip() of the body once. If the body throws, reports the exception to
  // Issue::errors, or prints it to stderr if `errors` is nullptr. Calls the observer before the
  // first poll and after the last one. Returns true if the task is done or has failed.
  bool step() noexcept;

 private:
  bool poll() noexcept;

  alignas(std::max_align_t) std::byte storage_[kBytes];
  TaskBody* body_ = nullptr;
  Issue issue_;
  int64_t begun_ = 0;  // result of WorkObserver::begin()
  bool polled_ = false;
};

// A first-in, first-out queue of tasks. It keeps the memory of removed tasks for later ones. The
// address of a queued task never changes.
class TaskQueue {
 public:
  bool empty() const { return size_ == 0; }
  Task& front() { return *ring_[head_]; }
  // Appends an entry. The caller must fill it with Task::emplace().
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

// Pauses a thread between polls. The pauses become longer, up to a limit. Without pauses, polling
// could occupy the core that another rank needs to finish the awaited work.
class Backoff {
 public:
  void pause();
  void reset() { rounds_ = 0; }

 private:
  int rounds_ = 0;
};

}  // namespace heddle::host
