#pragma once

#include <cstddef>

namespace heddle::host {

// The version of the measurement. Increase it when a change of the code may select another
// algorithm. Stored choices with an older version are then ignored.
inline constexpr int kTimedChoice = 2;

// Measures algorithms, in milliseconds per run. Each call runs the algorithm once before it starts
// to measure.
class AlgorithmStopwatch {
 public:
  virtual ~AlgorithmStopwatch() = default;
  // Returns the time of a single run, or infinity if the algorithm cannot run. Such an algorithm is
  // not measured again.
  virtual double first(size_t algorithm) = 0;
  // Returns the mean time of `runs` consecutive runs.
  virtual double mean(size_t algorithm, int runs) = 0;
};

// Returns the index of the fastest of `count` algorithms. The caller orders them by expected speed.
// The result is 0 unless another algorithm takes less than 0.995 of the time of algorithm 0. It is
// also 0 if no algorithm can run.
//
// Short heats. There are four rounds. In each round, every algorithm runs in turn for about 2 ms,
// at most 50 times and at least once. Algorithms that are not within 15 % of the best one are
// skipped. The algorithms run in turn so that a changing GPU clock favours none of them. The result
// of an algorithm is its best time.
//
// The final. It follows if the best algorithm takes at least 0.1 ms and less than 25 ms per run.
// - Reason: consecutive matrix products of this size bring a GPU to its power limit. Within 100 ms
//   the clock falls until the algorithm stays within the limit, so an algorithm that needs less
//   power may be faster. Short heats cannot show this, because the clock then depends on the mean
//   power of all algorithms.
// - Finalists: algorithm 0 if it can run, and the best of the others within 15 %, at most 4 in all.
//   With one finalist there is no final.
// - Each finalist runs alone for 100 ms, and only the second half is measured. Before that, the
//   first finalist runs for 100 ms to warm up the GPU.
// - Cost: half a second. `without_final` skips it.
// - Shorter algorithms have no final, because they seldom run often enough to reach the power
// limit.
//   Longer algorithms have none, because their short heats already take as long as a final.
size_t fastestAlgorithm(size_t count, AlgorithmStopwatch& stopwatch, bool without_final = false);

}  // namespace heddle::host
