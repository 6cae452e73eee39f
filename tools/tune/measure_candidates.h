#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace heddle::tools {

// Measures candidates. Tests replace it by a fake.
class CandidateTimer {
 public:
  virtual ~CandidateTimer() = default;
  // Runs a candidate once and returns its time in seconds. Before the run, no cache
  // contains data of the operands.
  virtual double run(size_t candidate) = 0;
};

// The measurement of one candidate.
struct CandidateResult {
  double seconds = std::numeric_limits<double>::infinity();  // the median of its runs
  int runs = 0;
};

// Measures the candidates of the list `usable` one after another, in rounds, so that a changing
// clock favours none. Returns one result for each of the `count` candidates.
// - From round kFirstRounds on, each round drops the candidates whose fastest run took more than
//   kFar times the fastest run of all. Earlier rounds, except the first one, drop those that took
//   more than kVeryFar times as long. A slow candidate would lower the clock of a GPU for the
//   candidate after it.
// - The measurement ends when one candidate is left, or when the 95 % confidence interval of the
//   median of every remaining candidate is within 2 % of the median, or after kMostRounds rounds.
std::vector<CandidateResult> measureCandidates(size_t count, const std::vector<size_t>& usable,
                                               CandidateTimer& timer);
inline constexpr int kFirstRounds = 6;  // the range of 6 runs is a 95 % interval of the median
inline constexpr int kMostRounds = 40;
inline constexpr double kFar = 1.15;
inline constexpr double kVeryFar = 2;

// Returns the candidate to choose: the fastest one if it is at least 1 % faster than the first
// usable one, otherwise the first usable one. Requires that there is a usable candidate.
size_t winnerOf(const std::vector<CandidateResult>& results, const std::vector<size_t>& usable);

}  // namespace heddle::tools
