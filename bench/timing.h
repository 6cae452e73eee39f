#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "ir/base/check.h"

// Helpers of the benchmarks, which report the median of several rounds. The first rounds do not
// count, because they plan, compile and fill memory pools.
namespace heddle::bench {

constexpr int kWarm = 3;  // number of first rounds that do not count

// Returns the number of rounds that the first argument of a benchmark gives, or `usual` if there is
// no argument. Throws an exception if the argument is not a whole number of at least 1.
inline int roundsOf(int argc, char** argv, int usual) {
  if (argc < 2) return usual;
  const std::string text = argv[1];
  int rounds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rounds);
  if (error != std::errc() || end != text.data() + text.size() || rounds < 1) {
    throw std::runtime_error(
        fmt::format("the number of rounds must be a whole number of at least 1, got '{}'", text));
  }
  return rounds;
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Calls `time` `warm` + `rounds` times. Each call measures one time and returns it. Returns the
// median of the last `rounds` times.
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

// Runs the body of main() of a benchmark and returns the exit code. If `run` throws an exception,
// prints its message to stderr and returns 1.
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
