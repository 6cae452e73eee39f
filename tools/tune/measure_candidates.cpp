#include "tools/tune/measure_candidates.h"

#include <algorithm>
#include <cmath>

#include "ir/base/check.h"
#include "tools/bench/median.h"

namespace heddle::tools {
namespace {

// Returns whether the 95 % confidence interval of the median is narrow. The ends of the interval
// are order statistics, so the distribution of the times does not matter.
bool isSettled(std::vector<double> times) {
  constexpr double kWidth = 0.02;
  const auto n = static_cast<double>(times.size());
  const double half = 0.98 * std::sqrt(n);  // 1.96 standard deviations of a binomial distribution
  const auto low = static_cast<int64_t>(std::floor(n / 2 - half));
  const auto high = static_cast<int64_t>(std::ceil(n / 2 + half)) - 1;
  if (low < 0 || high >= static_cast<int64_t>(times.size())) return false;
  std::sort(times.begin(), times.end());
  const double middle = median(times);
  return middle - times[static_cast<size_t>(low)] <= kWidth * middle &&
         times[static_cast<size_t>(high)] - middle <= kWidth * middle;
}

}  // namespace

std::vector<CandidateResult> measureCandidates(size_t count, const std::vector<size_t>& usable,
                                               CandidateTimer& timer, double most_seconds) {
  std::vector<std::vector<double>> times(count);
  std::vector<size_t> left = usable;
  const auto fastest = [&](size_t candidate) {
    return *std::min_element(times[candidate].begin(), times[candidate].end());
  };
  double spent = 0;
  for (int round = 0; round < kMostRounds && spent < most_seconds; ++round) {
    for (const size_t candidate : left) {
      times[candidate].push_back(timer.run(candidate));
      spent += times[candidate].back();
    }
    double best = std::numeric_limits<double>::infinity();
    for (const size_t candidate : left) best = std::min(best, fastest(candidate));
    if (round == 0) continue;  // one slow run does not decide
    const double far = round + 1 < kFirstRounds ? kVeryFar : kFar;
    std::erase_if(left, [&](size_t candidate) { return fastest(candidate) > far * best; });
    if (round + 1 < kFirstRounds) continue;
    if (left.size() == 1) break;
    if (std::all_of(left.begin(), left.end(),
                    [&](size_t candidate) { return isSettled(times[candidate]); })) {
      break;
    }
  }
  std::vector<CandidateResult> results(count);
  for (const size_t candidate : usable) {
    results[candidate] = {median(times[candidate]), static_cast<int>(times[candidate].size())};
  }
  return results;
}

size_t winnerOf(const std::vector<CandidateResult>& results, const std::vector<size_t>& usable) {
  constexpr double kGain = 0.98;  // smaller gains are within the intervals of isSettled()
  HEDDLE_CHECK(!usable.empty(), "no candidate is usable");
  size_t best = usable.front();
  for (const size_t candidate : usable) {
    if (results[candidate].seconds < results[best].seconds) best = candidate;
  }
  const size_t first = usable.front();
  return results[best].seconds < kGain * results[first].seconds ? best : first;
}

}  // namespace heddle::tools
