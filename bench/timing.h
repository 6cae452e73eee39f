#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <vector>

// The benchmarks report the median of several rounds. The first rounds do not count, because they
// plan, compile and fill pools.
namespace heddle::bench {

constexpr int kWarm = 3;

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Returns the median of `rounds` calls of `time`, which returns one time. `warm` calls before them
// do not count.
template <class Time>
double medianOf(int rounds, int warm, const Time& time) {
  std::vector<double> times;
  for (int i = 0; i < rounds + warm; ++i) {
    const double one = time();
    if (i >= warm) times.push_back(one);
  }
  return median(std::move(times));
}

// Returns the nanoseconds that the host spends in `work`.
template <class Work>
double hostNs(Work&& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

// Runs main() of a benchmark: an exception of `run` is printed to stderr, and the exit code is then
// 1.
template <class Run>
int runGuarded(const Run& run) {
  try {
    run();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

}  // namespace heddle::bench
