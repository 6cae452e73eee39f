#pragma once

#include <algorithm>
#include <cstdint>

#include "host/device/cpu/tile_pool.h"

namespace heddle::host {

// Calls work(begin, end) for ranges of rows that cover [0, rows), on the calling thread and on the
// threads of the pool. `row_cost` is the work for one row, in elements. A range consists of one or
// more units, and the last unit may be shorter. A unit is the largest number of rows that together
// cost at most 16384 elements, but at least one row. Smaller units would not pay, because it takes
// microseconds to give a unit to a thread.
template <class Work>
void forRows(TilePool& pool, int64_t rows, int64_t row_cost, const Work& work) {
  constexpr int64_t kLeastCost = int64_t{1} << 14;
  struct Job {
    const Work& work;
    int64_t rows;
    int64_t tile;  // rows per unit; a unit is a tile of the pool
  };
  const Job job{work, rows, std::max<int64_t>(1, kLeastCost / std::max<int64_t>(row_cost, 1))};
  const auto run = [](const void* args, int64_t begin, int64_t end) {
    const Job& job = *static_cast<const Job*>(args);
    job.work(begin * job.tile, std::min(end * job.tile, job.rows));
  };
  pool.run(run, &job, (rows + job.tile - 1) / job.tile);
}

}  // namespace heddle::host
