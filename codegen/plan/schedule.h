#pragma once

#include <cstdint>
#include <string>

#include "codegen/kernel.h"
#include "codegen/plan/space.h"
#include "ir/base/ceil_div.h"

namespace heddle::codegen {

// How the space of one launch is mapped to blocks and threads (CUDA) or tiles (C++).
//
//   Pointwise        each element is independent; lanes run along the innermost kept axis
//   InnerReduction   the innermost reduced axis is contiguous: lanes run along it
//   OuterReduction   the innermost kept axis is contiguous: each lane along it has an accumulator
//
// An *item* is `chunk` neighbours along the lane axis.
// - CUDA: a thread computes one item at a time, with `unroll` items in flight, and chunk == lanes.
//   In a reduction, a block computes block / reduce_threads items of kept space, with
//   reduce_threads threads for each.
// - Cpp: an item is one simple loop, `lanes` is the number of accumulators, and a tile is
//   `items_per_tile` items.
//
// If splits > 1, the reduced items are divided into `splits` ranges. Each range writes its
// accumulators to the workspace, and a second launch combines them in order. This needs no atomics,
// so the result is the same in every run.
enum class ScheduleKind : uint8_t { Pointwise, InnerReduction, OuterReduction };

struct Schedule {
  Target target = Target::Cuda;
  ScheduleKind kind = ScheduleKind::Pointwise;
  int32_t lanes = 1;
  int64_t chunk = 1;
  bool exact = false;  // CUDA: the lane axis is a multiple of lanes; every item is full
  int32_t unroll = 1;
  int32_t block = 1;
  int32_t reduce_threads = 1;
  int64_t splits = 1;
  int64_t items_per_tile = 1;

  // Returns the axis of `space` along which lanes run.
  size_t laneAxis(const Space& space) const;
};

// Return the number of items of kept and of reduced space under `schedule`.
int64_t keptItems(const Schedule& schedule, const Space& space);
int64_t reducedItems(const Schedule& schedule, const Space& space);

// Chooses the schedule for `space`. `may_split` permits splits > 1, which need a workspace.
Schedule chooseSchedule(const Space& space, Target target, bool may_split);

std::string describe(const Schedule& schedule, const Space& space);

}  // namespace heddle::codegen
