#include "host/device/timed_choice.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string_view>
#include <vector>

namespace heddle::host {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// host/device/timed_choice.h explains the short heats and the final.
constexpr double kNear = 1.15;    // a round skips algorithms above this factor of the best time
constexpr double kClear = 1.005;  // algorithm 0 wins within this factor of the best time
constexpr int kRounds = 4;        // number of rounds of short heats
constexpr double kHeatMs = 2;     // duration of a short heat, in milliseconds
constexpr int kMostRepeats = 50;  // largest number of runs in a short heat
constexpr size_t kFinalists = 4;
constexpr double kFinalMs = 100;                   // duration of a final heat, in milliseconds
constexpr double kFinalFrom = 0.1, kFinalTo = 25;  // range of best times with a final, in ms

class TimedChoice {
 public:
  TimedChoice(size_t count, AlgorithmStopwatch& stopwatch) : stopwatch_(stopwatch), times_(count) {}

  size_t fastest(bool without_final) {
    shortHeats();
    const double best = *std::min_element(times_.begin(), times_.end());
    if (!without_final && best >= kFinalFrom && best < kFinalTo) runFinal(finalists(kNear * best));
    const auto least = std::min_element(times_.begin(), times_.end());
    if (*least == kNever || times_[0] <= kClear * *least) return 0;
    return static_cast<size_t>(least - times_.begin());
  }

 private:
  void shortHeats() {
    for (size_t i = 0; i < times_.size(); ++i) times_[i] = stopwatch_.first(i);
    for (int round = 0; round < kRounds; ++round) {
      const double near = kNear * *std::min_element(times_.begin(), times_.end());
      for (size_t i = 0; i < times_.size(); ++i) {
        if (times_[i] > near || times_[i] == kNever) continue;
        const int runs = std::min(runsFor(kHeatMs, i), kMostRepeats);
        times_[i] = std::min(times_[i], stopwatch_.mean(i, runs));
      }
    }
  }

  // Returns algorithm 0, if it can run, followed by the other algorithms whose time is at most
  // `near`, fastest first. Returns at most kFinalists algorithms.
  std::vector<size_t> finalists(double near) const {
    std::vector<size_t> all(times_.size());
    std::iota(all.begin(), all.end(), size_t{0});
    std::stable_sort(all.begin() + 1, all.end(),
                     [&](size_t a, size_t b) { return times_[a] < times_[b]; });
    const bool first_runs = times_[0] != kNever;
    const auto out =
        std::find_if(all.begin() + 1, all.end(), [&](size_t i) { return times_[i] > near; });
    all.erase(out, all.end());
    if (!first_runs) all.erase(all.begin());
    if (all.size() > kFinalists) all.resize(kFinalists);
    return all;
  }

  // Measures the finalists. The new times replace all earlier times, because only the final
  // decides. Does nothing if there is only one finalist.
  void runFinal(const std::vector<size_t>& finalists) {
    if (finalists.size() < 2) return;
    std::vector<double> sustained(times_.size(), kNever);
    finalHeat(finalists[0]);
    for (const size_t i : finalists) sustained[i] = finalHeat(i);
    times_ = sustained;
  }

  // Runs an algorithm for kFinalMs. Returns the mean time of a run in the second half.
  double finalHeat(size_t i) {
    const int half = runsFor(kFinalMs / 2, i);
    stopwatch_.mean(i, half);
    return stopwatch_.mean(i, half);
  }

  // Returns how many runs of an algorithm take about `ms` milliseconds.
  int runsFor(double ms, size_t i) const {
    return std::max(1, static_cast<int>(ms / std::max(times_[i], 1e-4)));
  }

  AlgorithmStopwatch& stopwatch_;
  std::vector<double> times_;  // milliseconds per run
};

}  // namespace

bool librariesAreTimed() {
  const char* setting = std::getenv("HEDDLE_LIBRARY_TIMING");
  return setting == nullptr || std::string_view(setting) != "0";
}

size_t fastestAlgorithm(size_t count, AlgorithmStopwatch& stopwatch, bool without_final) {
  return count < 2 ? 0 : TimedChoice(count, stopwatch).fastest(without_final);
}

}  // namespace heddle::host
