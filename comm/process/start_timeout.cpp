#include "comm/process/start_timeout.h"

#include <pthread.h>

#include <chrono>

#include "comm/process/job_processes.h"
#include "ir/base/check.h"
#include "ir/system/start_thread.h"

namespace heddle::comm {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(50);
constexpr double kPollsPerSecond = 20;

}  // namespace

StartTimeout::StartTimeout(double seconds, const std::atomic<int>* end_signal,
                           std::string waits_for, End on_end, std::string failure)
    : seconds_(seconds),
      end_signal_(end_signal),
      waits_for_(std::move(waits_for)),
      on_end_(std::move(on_end)),
      failure_(std::move(failure)) {
  thread_ = startThread("the time limit of the start", [this] { serve(); });
}

StartTimeout::~StartTimeout() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  woken_.notify_all();
  thread_.join();
}

void StartTimeout::nowWaitsFor(std::string what) {
  std::lock_guard lock(mutex_);
  waits_for_ = std::move(what);
}

void StartTimeout::serve() {
  pthread_setname_np(pthread_self(), kStartThread);
  int signal = 0;
  for (double polls = 0; signal == 0 && (seconds_ == 0 || polls < seconds_ * kPollsPerSecond);
       ++polls) {
    std::unique_lock lock(mutex_);
    woken_.wait_for(lock, kPoll, [&] { return stop_; });
    if (stop_) return;
    if (end_signal_ != nullptr) signal = end_signal_->load();
  }
  on_end_(text(signal), signal);
}

std::string StartTimeout::text(int signal) {
  std::lock_guard lock(mutex_);
  const std::string why =
      signal != 0 ? fmt::format("told to end by signal {} before the job has started", signal)
                  : fmt::format("{} within {} s", failure_, seconds_);
  const std::string ranks = describeJobProcesses();
  return fmt::format("{}: it waits for {}{}{}", why, waits_for_, ranks.empty() ? "" : "\n", ranks);
}

}  // namespace heddle::comm
