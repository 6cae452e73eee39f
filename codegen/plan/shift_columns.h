#pragma once

#include <optional>

#include "codegen/kernel_choice.h"
#include "codegen/plan/schedule.h"
#include "codegen/plan/space.h"

namespace heddle::codegen {

// Shifted columns: aligned vectors for outer reductions whose rows begin at unaligned addresses.
//
// A *row* consists of the elements along the lane axis, for one index along each other axis. If the
// distance of two rows is not a multiple of a vector, the vectors at the same columns are aligned
// in some rows only. Each thread of a shifted reduction therefore accesses columns that are up to
// lanes - 1 elements to the left of its own columns: so many that its vectors are aligned. This
// number is the *shift* of the thread. All rows of a thread have the same shift: their numbers
// differ by multiples of Schedule::reduce_threads, and the distance of so many rows is a multiple
// of a vector.
//
// After the loop, the threads exchange their states in shared memory. A state moves to the thread
// that has its column. It belongs to this thread or to its left neighbour. The last thread of a
// block therefore only computes states for its neighbour. It has the same columns as the first
// thread of the next block (Schedule::overlaps), which stores their results.

// Returns whether a CUDA reduction may set Schedule::shifted, with the lanes, the block and the
// threads of `schedule`. All of this must be true:
// - It is an outer reduction with several lanes, several threads per column, and at least four
//   columns per block.
// - The kernel uses no indices of elements, and stores nothing per element.
// - Each input either does not change along the lane axis; or it has the stride 1 there and
//   changes along a reduced axis.
// - All rows of a thread have the same shift. If several inputs change along the lane axis, they
//   begin at aligned addresses, and their rows have equal shifts.
// - Some vectors would be unaligned without a shift.
bool mayShift(const Space& space, const Schedule& schedule);

// Returns the schedule of an outer CUDA reduction that should be shifted: it may be, it has many
// rows, its rows are not short, and the elements of its inputs with columns have 16 to 32 bits.
// Returns nullopt for all others. A choice that names `shifted` decides instead, if the reduction
// may be shifted. `width` is the number of elements of the longest vector. Requires that lanes run
// along the innermost kept axis, and that the reduction permits several ranges.
std::optional<Schedule> scheduleShifted(const Space& space, int32_t width,
                                        const KernelChoice* choice);

// Restores the lanes and threads of a shifted reduction if it could not be shifted with those that
// a choice names. `before` is the schedule without the choice. Does nothing to other kernels.
void keepShift(const Space& space, const Schedule& before, Schedule& schedule);

}  // namespace heddle::codegen
