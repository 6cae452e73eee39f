#include "host/device/cpu/cpu_stream.h"

#include <chrono>
#include <cstdio>
#include <cstring>

#include "host/device/cpu/adversarial_scheduler.h"
#include "ir/base/error.h"
#include "ir/system/start_thread.h"

namespace heddle::host {
namespace {

void reportWithoutSink(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "heddle: error in device work that belongs to no run: %s\n", e.what());
  } catch (...) {
    std::fprintf(stderr, "heddle: unknown error in device work that belongs to no run\n");
  }
}

}  // namespace

bool Task::step() noexcept {
  WorkObserver* const observer = issue_.observer;
  if (!polled_ && observer != nullptr) begun_ = observer->begin(issue_, body_->communicates());
  polled_ = true;
  if (!poll()) return false;
  if (observer != nullptr) observer->end(issue_, body_->communicates(), begun_);
  return true;
}

bool Task::poll() noexcept {
  try {
    const bool failed = issue_.errors != nullptr && issue_.errors->failed();
    return failed ? body_->skip() : body_->poll();
  } catch (...) {
    if (issue_.errors == nullptr) {
      reportWithoutSink(std::current_exception());
    } else {
      issue_.errors->report(std::current_exception(), issue_.instruction);
    }
    return true;
  }
}

// The first 64 pauses only yield the core. Later pauses sleep for 25 to 200 microseconds.
void Backoff::pause() {
  constexpr int kYields = 64;
  constexpr int kLongest = 8;
  if (rounds_++ < kYields) {
    std::this_thread::yield();
    return;
  }
  const int steps = std::min(rounds_ - kYields, kLongest);
  std::this_thread::sleep_for(std::chrono::microseconds(25 * steps));
}

CpuStream::CpuStream(AdversarialScheduler* scheduler) : scheduler_(scheduler) {
  if (scheduler_ == nullptr) {
    worker_ = startThread("a stream of the CPU device", [this] { serve(); });
  }
}

CpuStream::~CpuStream() {
  if (!worker_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  ready_.notify_one();
  worker_.join();
}

void CpuStream::announce() {
  if (scheduler_ != nullptr) scheduler_->taskComes();
}

StreamPoint CpuStream::end() {
  std::lock_guard lock(mutex_);
  return {this, enqueued_};
}

void CpuStream::wait(uint64_t tasks) {
  if (passed(tasks)) return;
  if (scheduler_ != nullptr) {
    scheduler_->wait({this, tasks});
    return;
  }
  std::unique_lock lock(mutex_);
  ++waiting_;
  done_.wait(lock, [&] { return passed(tasks); });
  --waiting_;
}

std::vector<std::byte> CpuStream::buffer(const void* bytes, size_t count) {
  std::vector<std::byte> result;
  {
    std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      result = std::move(spare_.back());
      spare_.pop_back();
    } else if (++buffers_ > spare_.capacity()) {
      spare_.reserve(2 * buffers_);  // recycle() is noexcept and must not allocate
    }
  }
  result.resize(count);
  if (count > 0) std::memcpy(result.data(), bytes, count);
  return result;
}

void CpuStream::recycle(std::vector<std::byte> buffer) noexcept {
  std::lock_guard lock(mutex_);
  spare_.push_back(std::move(buffer));
}

Task* CpuStream::head() {
  std::lock_guard lock(mutex_);
  return queue_.empty() ? nullptr : &queue_.front();
}

void CpuStream::finishHead(Task& task) {
  // The task is destroyed before completed_ counts it, so that all its resources are released
  // before a waiting thread continues. The mutex is not locked during the destruction, because the
  // destructor of a task may run code of the caller.
  task.destroy();
  bool thread_waits = false;
  {
    std::lock_guard lock(mutex_);
    queue_.popFront();
    completed_.fetch_add(1, std::memory_order_release);
    thread_waits = waiting_ > 0;
  }
  if (thread_waits) done_.notify_all();
}

void CpuStream::serve() {
  for (;;) {
    Task* task = nullptr;
    {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, [&] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;
      task = &queue_.front();
    }
    const StreamPoint needed = task->waitsFor();
    if (needed.stream != nullptr) needed.stream->wait(needed.tasks);
    Backoff backoff;
    while (!task->step()) backoff.pause();
    finishHead(*task);
  }
}

}  // namespace heddle::host
