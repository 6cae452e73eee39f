#pragma once

#include <cstdint>
#include <string>

#include "codegen/kernel.h"
#include "codegen/plan/space.h"
#include "ir/base/ceil_div.h"

namespace heddle::codegen {

// How the space of one launch is mapped to the machine.
//
//   Pointwise        every element on its own; lanes along the innermost kept axis
//   InnerReduction   the innermost reduced axis is contiguous: lanes along it
//   OuterReduction   the innermost kept axis is contiguous: lanes along it, one accumulator each
//
// An *item* is `chunk` neighbours along the lane axis. CUDA: a thread takes an item at a time,
// chunk == lanes, `unroll` items in flight; a reduction has block / reduce_threads items of kept
// space and reduce_threads threads for each. Cpp: one simple loop over an item; lanes is the number
// of accumulators; a tile is `items_per_tile` items.
// With splits > 1 the reduced items are cut in `splits` ranges; each writes its accumulators to the
// workspace and a second launch combines them in order: no atomics, the same result every run.
enum class ScheduleKind : uint8_t { Pointwise, InnerReduction, OuterReduction };

struct Schedule {
  Target target = Target::Cuda;
  ScheduleKind kind = ScheduleKind::Pointwise;
  int32_t lanes = 1;
  int64_t chunk = 1;
  bool exact = false;  // CUDA: the lane axis is a multiple of lanes, no item is cut short
  int32_t unroll = 1;
  int32_t block = 1;
  int32_t reduce_threads = 1;
  int64_t splits = 1;
  int64_t items_per_tile = 1;

  // The axis of `space` along which lanes lie.
  size_t laneAxis(const Space& space) const;
};

// Items of kept and of reduced space under `schedule`.
int64_t keptItems(const Schedule& schedule, const Space& space);
int64_t reducedItems(const Schedule& schedule, const Space& space);

// `may_split`: a workspace may be used.
Schedule chooseSchedule(const Space& space, Target target, bool may_split);

std::string describe(const Schedule& schedule, const Space& space);

}  // namespace heddle::codegen
