#include "codegen/plan/schedule_cpu.h"

#include <algorithm>

namespace heddle::codegen {

namespace {

// The largest number of elements of the inner loop of a pointwise C++ kernel (Schedule::chunk).
// They are enough to hide the cost of starting the loop, and few enough to stay in the cache.
constexpr int64_t kCpuElements = 8192;

}  // namespace

void scheduleCpuPointwise(const Space& space, Schedule& s) {
  s.chunk = std::min<int64_t>(kCpuElements, std::max<int64_t>(space.extents[s.laneAxis(space)], 1));
  s.items_per_tile = std::max<int64_t>(1, 2 * kCpuElements / s.chunk);
}

void scheduleCpuReduction(const Space& space, Schedule& s, bool may_split) {
  int64_t extent = std::max<int64_t>(space.extents[s.laneAxis(space)], 1);
  int64_t work = 0;
  if (s.kind == ScheduleKind::InnerReduction) {
    s.chunk = std::min<int64_t>(4096, extent);
    s.lanes = cpuLanes(s.chunk);
    work = s.chunk;
  } else {
    s.lanes = 256;
    s.chunk = std::min<int64_t>(s.lanes, extent);
    work = s.chunk;
  }
  int64_t kept = keptItems(s, space);
  int64_t reduced = reducedItems(s, space);
  int64_t all = kept * reduced * work;
  // A tile has about 64 Ki elements, or one item if an item has more. If there are fewer kept items
  // than tiles, and fewer than 64, the reduction is split so that it has up to 64 tiles.
  constexpr int64_t kTileElements = 65536;
  int64_t tiles = std::max<int64_t>(1, all / kTileElements);
  if (may_split && kept < 64 && tiles > kept) {
    s.splits = std::clamp<int64_t>(std::min<int64_t>(64, tiles) / std::max<int64_t>(kept, 1), 1,
                                   std::max<int64_t>(reduced, 1));
  }
  int64_t of_item = std::max<int64_t>(1, reduced * work / s.splits);
  s.items_per_tile = std::max<int64_t>(1, kTileElements / of_item);
}

int32_t cpuLanes(int64_t chunk) {
  constexpr int64_t kLong = 512;
  return chunk >= kLong ? 64 : 16;
}

}  // namespace heddle::codegen
