#pragma once

#include <cstddef>

namespace heddle::host {

// Changes whenever a race may end otherwise than it did: choices that an older one left on disk are
// not asked any more.
inline constexpr int kTimedChoice = 2;

// Milliseconds that an algorithm takes a run. Each call runs it once before it counts.
class AlgorithmStopwatch {
 public:
  virtual ~AlgorithmStopwatch() = default;
  // Of a single run; infinity when the algorithm does not run, which is not asked for again then.
  virtual double first(size_t algorithm) = 0;
  // The mean of `runs` in a row.
  virtual double mean(size_t algorithm, int runs) = 0;
};

// Index of the fastest of `count` algorithms, in the order of what is expected of them: the first
// one is taken unless another takes less than 0.995 of its time, or when none runs.
//
// Short heats: 2 ms of each algorithm in turn, over and over while it is within 15 % of the best,
// so that a clock that changes meanwhile favours none. The best heat counts.
//
// The final, where a run takes from 0.1 to 25 ms: such products one after the other take a GPU to
// its power limit, and within 100 ms its clock falls to what the algorithm's power leaves. One that
// needs less of it is faster then, which heats in turn cannot show, as the clock follows the mean
// power of all. So the first algorithm and the best of the others within 15 %, 4 in all, run by
// themselves for 100 ms each, of which the second half counts; before them the GPU runs warm for as
// long. That is half a second, so a caller may do `without_final`. Shorter runs seldom come in such
// numbers, and the short heats of longer ones last as long as a final.
size_t fastestAlgorithm(size_t count, AlgorithmStopwatch& stopwatch, bool without_final = false);

}  // namespace heddle::host
