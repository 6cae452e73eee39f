#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <limits>

#include "ir/system/usable_cpus.h"

namespace heddle {

// Returns the fewest bytes of outputs that a kernel on the CPU should store around the caches. The
// environment variable HEDDLE_CPU_STREAM_BYTES sets this number. Otherwise it is the size of the
// last cache: the next reader would not find more bytes there. A process with fewer than four CPUs
// streams nothing, because its cores limit the time, and not the memory. On one core of an AMD EPYC
// 9005, a streamed gelu took 1.2 times as long.
inline int64_t leastStreamedBytes() {
  constexpr int64_t kUsualCache = int64_t{32} << 20;
  constexpr int kFewestCpus = 4;
  if (const char* given = std::getenv("HEDDLE_CPU_STREAM_BYTES")) {
    const int64_t bytes = std::atoll(given);
    if (bytes > 0) return bytes;
  }
  if (usableCpus() < kFewestCpus) return std::numeric_limits<int64_t>::max();
#ifdef _SC_LEVEL3_CACHE_SIZE
  if (const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE); bytes > 0) return bytes;
#endif
  return kUsualCache;
}

}  // namespace heddle
