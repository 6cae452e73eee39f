#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace heddle::comm {

// Limits the time for which a rank waits for a job to start, before a job monitor exists. A thread
// counts the time in its own polls, so that a job that was stopped and continued as a whole does
// not time out.
class StartTimeout {
 public:
  // `text`: what this rank waited for, and one line per rank of which something is known. `signal`:
  // the signal that told this process to end; 0: the time limit has expired.
  using End = std::function<void(const std::string& text, int signal)>;

  // `seconds`: 0: no limit. `end_signal`: where a signal handler stores its number, or nullptr.
  // `on_end` is called at most once, on the thread, and must not destroy this object.
  StartTimeout(double seconds, const std::atomic<int>* end_signal, std::string waits_for,
               End on_end);
  // Ends the limit, because the job has started. After the return on_end is not called any more.
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
