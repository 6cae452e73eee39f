#pragma once

#include <cstddef>

namespace heddle::host {

// The version of the measurement. Increase this number when a change of the code may select
// different algorithms. Choices that a different version has stored are ignored.
inline constexpr int kTimedChoice = 3;

// Returns false if the environment variable HEDDLE_LIBRARY_TIMING is 0. heddle then measures no
// algorithms of libraries, and uses no stored choices.
bool librariesAreTimed();

// Measures the time of algorithms in milliseconds per run. Each function first runs the algorithm
// once without measuring.
class AlgorithmStopwatch {
 public:
  virtual ~AlgorithmStopwatch() = default;
  // Returns the time of a single run, or infinity if the algorithm cannot run.
  virtual double first(size_t algorithm) = 0;
  // Returns the mean time of `runs` consecutive runs.
  virtual double mean(size_t algorithm, int runs) = 0;
};

// Returns the index of the fastest of `count` algorithms. The caller orders the algorithms by
// expected speed, fastest first. Algorithm 0 is preferred: the function chooses it if its time is
// at most 0.5 % longer than the best time. Returns 0 if no algorithm can run.
//
// The measurement has two parts: short heats and a final. A heat is a series of consecutive runs of
// one algorithm, which are timed together.
//
// Short heats. First, one run of each algorithm is measured. Four rounds follow. In each round, the
// algorithms run one after another, each for about 2 ms, at most 50 times and at least once. A
// round skips algorithms that are more than 15 % slower than the best one. Rounds prevent a
// changing GPU clock from favouring one algorithm. The result of an algorithm is its best time.
//
// Final. The final takes place if the best time is at least 0.1 ms and less than 25 ms per run.
// - Reason: consecutive matrix products that take this long bring a GPU to its power limit. The
//   clock then falls, within 100 ms, until the algorithm stays within the limit. An algorithm that
//   needs less power may therefore be faster in the end. Short heats cannot show this, because in a
//   round the clock depends on the mean power of all algorithms.
// - Finalists: algorithm 0 if it can run, and the best other algorithms within 15 % of the best
//   time. There are at most 4 finalists. If there is only one, the final is skipped.
// - Heats: the first finalist runs for 100 ms to warm up the GPU. Then each finalist runs alone for
//   100 ms, and only the second half of this time is measured. Only the times of the final decide.
// - Cost: up to half a second. `without_final` skips the final.
// - If the best time is below 0.1 ms, there is no final, because such short matrix products seldom
//   run often enough in a row to reach the power limit.
// - If the best time is 25 ms or more, there is no final, because the short heats already take as
//   long as a final.
size_t fastestAlgorithm(size_t count, AlgorithmStopwatch& stopwatch, bool without_final = false);

}  // namespace heddle::host
