#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace heddle::comm {

// Sees to it that a rank does not wait for ever for a job that does not come together: there is no
// control job monitor yet that could tell. A thread counts the time in its own turns, so that a job
// that was stopped as a whole goes on.
class StartTimeout {
 public:
  // `text`: what this rank waited for, and a line a rank where something is known of the others.
  // `signal`: the one that told this process to end; 0 when the time is over.
  using End = std::function<void(const std::string& text, int signal)>;

  // `seconds`: 0 for ever. `end_signal`: where a handler leaves its number, or nullptr. `on_end` is
  // called at most once, on the thread, and must not destroy the watch.
  StartTimeout(double seconds, const std::atomic<int>* end_signal, std::string waits_for,
               End on_end);
  // The job has started: when it returns on_end is not called any more.
  ~StartTimeout();
  StartTimeout(const StartTimeout&) = delete;
  StartTimeout& operator=(const StartTimeout&) = delete;

  void nowWaitsFor(std::string what);

 private:
  void serve();
  std::string text(int signal);

  double seconds_;
  const std::atomic<int>* end_signal_;
  std::string waits_for_;
  End on_end_;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace heddle::comm
