#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace heddle::comm {

// Limits the time for which a rank without a job monitor waits for its job to start or to end. A
// thread measures the time by counting its own polls. If all processes of a job are stopped and
// later continued, the job therefore does not time out.
class StartTimeout {
 public:
  // A function that ends the wait. `text` is a message: why the wait ends, what this rank waits
  // for, and the lines of describeJobProcesses() (comm/process/job_processes.h). `signal` is the
  // number of the signal that asked this process to end; 0: the time limit has expired.
  using End = std::function<void(const std::string& text, int signal)>;

  // `seconds` is the limit; 0: no limit. `end_signal` is where a signal handler stores the number
  // of the signal, or nullptr. `waits_for` names in `text` what this rank waits for. `on_end` is
  // called at most once, on the thread of this object, and must not destroy this object. `failure`
  // is the start of `text` if the limit has expired.
  StartTimeout(double seconds, const std::atomic<int>* end_signal, std::string waits_for,
               End on_end, std::string failure = "the job has not started");
  // Stops the thread. Destroy the object when the wait is over. After the destructor has returned,
  // `on_end` is not called any more.
  ~StartTimeout();
  StartTimeout(const StartTimeout&) = delete;
  StartTimeout& operator=(const StartTimeout&) = delete;

  // Replaces `waits_for`.
  void nowWaitsFor(std::string what);

 private:
  void serve();
  std::string text(int signal);

  double seconds_;
  const std::atomic<int>* end_signal_;
  std::string waits_for_;
  End on_end_;
  std::string failure_;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace heddle::comm
