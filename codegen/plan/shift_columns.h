#pragma once

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
// number is the *shift* of the thread. All rows of a thread have the same shift, because their
// numbers differ by multiples of Schedule::reduce_threads.
//
// After the loop, the threads exchange their states in shared memory. A state moves to the thread
// that has its column. It belongs to this thread or to its left neighbour. The last thread of a
// block therefore only computes states for its neighbour. It has the same columns as the first
// thread of the next block (Schedule::overlaps), which stores their results.

// Returns whether a CUDA reduction may set Schedule::shifted, with the lanes, the block and the
// threads of `schedule`. All of this must be true:
// - It is an outer reduction with several lanes and several threads per column.
// - The kernel uses no indices of elements, and stores nothing per element.
// - All rows of a thread have the same shift, and all inputs have equal shifts. Inputs that do not
//   change along the lane axis have no shift.
// - Some vectors would be unaligned without a shift.
bool mayShift(const Space& space, const Schedule& schedule);

// Returns whether a reduction should be shifted: it may be, its rows are not short, and it has many
// rows of 16-bit elements that begin between two words of 32 bits. A choice that names `shifted`
// decides instead, if the reduction may be shifted. `width` is the number of elements of the
// longest vector.
bool shouldShift(const Space& space, int32_t width, const KernelChoice* choice);

// Sets the lanes and threads of a shifted reduction.
void scheduleShifted(const Space& space, int32_t width, Schedule& schedule);

}  // namespace heddle::codegen
