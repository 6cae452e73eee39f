#pragma once

#include <cstddef>
#include <cstdint>

#include "codegen/kernel.h"
#include "codegen/kernel_choice.h"
#include "codegen/plan/space.h"
#include "ir/base/ceil_div.h"

namespace heddle::codegen {

// How the iteration space of one launch (codegen/plan/space.h) is mapped to blocks and threads
// (CUDA) or to tiles (C++). *Lanes* are neighbouring elements along one axis of the space, the
// lane axis. One CUDA thread loads them together.
//
//   Pointwise        a kernel without reductions; lanes run along the innermost kept axis
//   InnerReduction   lanes run along the innermost reduced axis, which is usually contiguous
//   OuterReduction   lanes run along the innermost kept axis, which is usually contiguous; each
//                    lane has its own result
//
// An *item* consists of `chunk` neighbouring elements along the lane axis, and of one element along
// every other axis. Items along the kept axes and items along the reduced axes are counted
// separately. For example, a kept item of an InnerReduction is one index along every kept axis.
// - CUDA: chunk == lanes. A thread loads `unroll` items and then computes them one at a time. In a
//   reduction, reduce_threads threads share each item of the kept axes, and a block of `block`
//   threads computes columnsOfBlock() of these items.
// - Cpp: one simple loop computes an item, and a tile of the grid (LaunchStage::grid) consists of
//   `items_per_tile` items of the kept axes. In a reduction, the loop has `lanes` accumulators.
//
// If splits > 1, the reduced items are divided into `splits` ranges. One half of the kernel stores
// the accumulators of each range in the workspace. The other half combines them in a fixed order,
// so the result is the same in every run (LoopPlan in codegen/families/loops.h).
enum class ScheduleKind : uint8_t { Pointwise, InnerReduction, OuterReduction };

struct Schedule {
  Target target = Target::Cuda;
  ScheduleKind kind = ScheduleKind::Pointwise;
  int32_t lanes = 1;
  int64_t chunk = 1;
  bool exact = false;  // CUDA: the extent of the lane axis is a multiple of `lanes`
  // CUDA outer reductions (codegen/plan/shift_columns.h). `shifted`: vectors begin at the aligned
  // address before their first element. `overlaps`: the last column of a block is the first column
  // of the next block, which stores its results. A shifted reduction overlaps.
  bool shifted = false;
  bool overlaps = false;
  int32_t unroll = 1;
  int32_t block = 1;
  int32_t reduce_threads = 1;
  int64_t splits = 1;
  int64_t items_per_tile = 1;
  // CUDA: after a load, the cache lines of elements that the kernel loads once (Access::once in
  // codegen/frame/kernel_frame.h) are the first to leave the L2 cache.
  bool streams = false;

  // Returns the axis of `space` along which lanes run.
  size_t laneAxis(const Space& space) const;
  // Returns the number of items along `extent` elements of the lane axis. The vectors of shifted
  // reductions begin up to lanes - 1 elements before their columns, so one more may be necessary.
  int64_t laneItems(int64_t extent) const {
    return ceilDiv(overlaps ? extent + chunk - 1 : extent, chunk);
  }
  // CUDA reductions: returns the number of kept items whose results a block stores.
  int32_t columnsOfBlock() const { return block / reduce_threads - (overlaps ? 1 : 0); }
};

// These functions return the number of items along the kept axes and along the reduced axes
// (codegen/plan/space.h).
int64_t keptItems(const Schedule& schedule, const Space& space);
int64_t reducedItems(const Schedule& schedule, const Space& space);

// Returns the number of groups of blocks of a CUDA reduction. The blocks of a group reduce the same
// items of the kept axes, each block in another range of the reduced items.
int64_t groupsOf(const Schedule& schedule, const Space& space);

// The assumed number of multiprocessors. On other GPUs, a schedule is correct, but may be slower.
inline constexpr int64_t kProcessors = 132;
inline constexpr int64_t kMostSplits = 2048;  // the largest Schedule::splits

// Returns the number of accumulators of a C++ kernel that reduces the `chunk` neighbouring elements
// of an item to one result. A long item has more accumulators, because each operation waits for the
// previous one on the same accumulator.
int32_t cpuLanes(int64_t chunk);

// Chooses the schedule for `space`. `may_split` permits splits > 1, which need a workspace.
// `has_joint`: a pair of reductions is computed together (codegen/plan/joint.h), so that a CUDA
// thread needs about twice as many registers. If `choice` has the family "loops" and names
// `shifted`, it decides whether columns are shifted. Its other parameters are for apply().
Schedule chooseSchedule(const Space& space, Target target, bool may_split, bool has_joint = false,
                        const KernelChoice* choice = nullptr);

// Chooses the schedule of a pointwise part of a segment that shares a launch with other parts
// (codegen/families/shared_launch.h). Parts of all sizes should share one kernel text. CUDA: the
// schedule therefore depends on dtypes, strides and alignments, and on an extent only in whether it
// is 1. Cpp: the members of the schedule that depend on extents are arguments of the kernel.
Schedule chooseSharedSchedule(const Space& space, Target target);

// Returns the parameters of a schedule as a choice of the family "loops".
KernelChoice choiceOf(const Schedule& schedule);
// Changes the parameters that the choice names, as far as the space permits. `schedule` must be the
// result of chooseSchedule() for the same choice. Changes nothing if `choice` is nullptr or has a
// family other than "loops".
void apply(const KernelChoice* choice, const Space& space, bool may_split, Schedule& schedule);

}  // namespace heddle::codegen
