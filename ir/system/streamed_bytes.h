#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <limits>

#include "ir/system/usable_cpus.h"

namespace heddle {

// Returns the size of the last-level cache of the CPUs in bytes, or 32 MiB if the system does not
// report it. Returns the largest number if the calling thread may run on fewer than four CPUs.
// Takes microseconds, because it asks the system.
inline int64_t bytesOfLastCache() {
  constexpr int64_t kUsualCache = int64_t{32} << 20;
  constexpr int kFewestCpus = 4;
  if (usableCpus() < kFewestCpus) return std::numeric_limits<int64_t>::max();
#ifdef _SC_LEVEL3_CACHE_SIZE
  if (const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE); bytes > 0) return bytes;
#endif
  return kUsualCache;
}

// A CPU kernel can stream its outputs, that is, write them with stores that bypass the caches.
// Returns the number of output bytes from which on a kernel should do this. The environment
// variable HEDDLE_CPU_STREAM_BYTES sets this number, and is ignored if it is not positive.
// Without the variable, the function returns the size of the last-level cache, because this cache
// cannot keep a larger output for the next reader. With fewer than four CPUs, the function returns
// the largest number, so kernels stream nothing. The reason: the cores, and not the memory, then
// limit the speed; on one core of an AMD EPYC 9005, a gelu took 1.2 times as long with streaming as
// without. Every new plan calls this function once per kernel, so the function asks the system for
// the cache only at the first call.
inline int64_t leastStreamedBytes() {
  static const int64_t last_cache = bytesOfLastCache();
  if (const char* given = std::getenv("HEDDLE_CPU_STREAM_BYTES")) {
    const int64_t bytes = std::atoll(given);
    if (bytes > 0) return bytes;
  }
  return last_cache;
}

}  // namespace heddle
