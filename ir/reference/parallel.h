#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "ir/system/usable_cpus.h"

namespace heddle {

// Splits the range [0, count) into parts and calls task(begin, end) for each part, on up to 16
// threads if `count` is larger than `grain`. The length of each part, except the last one, is a
// multiple of `grain`. The parts must be independent, so that the result does not depend on the
// number of threads. If `task` throws, the other parts still run, and inParallel() then throws one
// of the exceptions.
inline void inParallel(int64_t count, int64_t grain,
                       const std::function<void(int64_t, int64_t)>& task) {
  const int64_t threads = std::min(usableCpus(), 16);
  const int64_t grains = (count + grain - 1) / grain;
  if (threads == 1 || grains < 2) return task(0, count);
  const int64_t part = (grains + threads - 1) / threads * grain;
  std::mutex mutex;
  std::exception_ptr error;
  const auto run = [&](int64_t begin, int64_t end) noexcept {
    try {
      task(begin, end);
    } catch (...) {
      std::lock_guard lock(mutex);
      error = std::current_exception();
    }
  };
  std::vector<std::thread> workers;
  workers.reserve(static_cast<size_t>(threads));
  for (int64_t begin = part; begin < count; begin += part) {
    const int64_t end = std::min(begin + part, count);
    try {
      workers.emplace_back([&run, begin, end] { run(begin, end); });
    } catch (const std::exception&) {
      run(begin, end);  // the system starts no more threads
    }
  }
  run(0, std::min(part, count));
  for (std::thread& worker : workers) worker.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace heddle
