#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace heddle::tools {

// Measures the run time of the candidates of one kernel. A candidate is a variant of the generated
// kernel (codegen/bind/candidates.h). Tests replace the implementation by a fake.
class CandidateTimer {
 public:
  virtual ~CandidateTimer() = default;
  // Runs a candidate once and returns its time in seconds. Flushes the caches of the device before
  // the run.
  virtual double run(size_t candidate) = 0;
};

// The measurement of one candidate.
struct CandidateResult {
  double seconds = std::numeric_limits<double>::infinity();  // the median of its runs
  int runs = 0;
};

// Measures the candidates of the list `usable` in rounds. Each round runs each remaining candidate
// once, so that a changing clock favours no candidate. Returns one result for each of the `count`
// candidates.
// - From round kFirstRounds on, each round drops the candidates whose fastest run took more than
//   kFar times the fastest run of all. Rounds before that, except the first one, use the factor
//   kVeryFar. They drop very slow candidates early, because each run of such a candidate could
//   lower the clock of a GPU for the next candidate.
// - After kFirstRounds rounds or more, the measurement ends when one candidate is left, or when the
//   95 % confidence interval of the median of every remaining candidate is within 2 % of the
//   median. It ends after kMostRounds rounds at the latest.
// - It also ends after any round, once all runs together have taken `most_seconds` or longer.
std::vector<CandidateResult> measureCandidates(
    size_t count, const std::vector<size_t>& usable, CandidateTimer& timer,
    double most_seconds = std::numeric_limits<double>::infinity());
inline constexpr int kFirstRounds = 6;  // the range of 6 runs is a 95 % interval of the median
inline constexpr int kMostRounds = 40;
inline constexpr double kFar = 1.15;
inline constexpr double kVeryFar = 2;

// Returns the candidate to choose: the fastest one if it takes over 2 % less time than the first
// usable one, otherwise the first usable one. Requires that `usable` is not empty.
size_t winnerOf(const std::vector<CandidateResult>& results, const std::vector<size_t>& usable);

}  // namespace heddle::tools
