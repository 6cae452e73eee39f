#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/kernel_choice.h"
#include "codegen/plan/analysis.h"
#include "codegen/plan/schedule.h"
#include "codegen/plan/space.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// The family of kernels that transpose. It serves pointwise segments in which some tensors are
// contiguous along one axis, and other tensors are contiguous along another axis. The tensors of
// one of the two groups are *exchanged*:
// - CUDA: a block of threads reads a square of an exchanged input in vectors, and the threads
//   exchange the elements through shared memory. In the same way, they exchange a square of results
//   before they store it in an exchanged output.
// - CPU: a thread transposes a square of an exchanged input into an array, computes the square row
//   by row, and transposes results into exchanged outputs. The thread uses all elements of a cache
//   line together. Cache lines of different rows often evict each other if the rows are far apart
//   in memory. This costs little, because the thread rarely needs an evicted line again.

// The decisions about a kernel with squares, from which buildSquares() creates the program.
struct SquarePlan {
  Space space;  // the two axes of the squares are the last ones
  Schedule schedule;
  SquareLayout layout;
  std::vector<bool> aligned;  // per tensor: ExchangeTile::aligned or StoreExchanged::aligned
};
// Returns whether the tensor of SquarePlan::space is exchanged. `rank` is the number of axes.
bool needsExchange(const SpaceTensor& tensor, size_t rank);
// Returns the plan for a space. A choice of the family "squares" changes the parameters that it
// names, as far as the space permits. Returns nullopt in these cases:
// - The space has a reduced axis.
// - No tensor needs an exchange: along some axis, each output is contiguous, and each input is
//   contiguous or does not change.
// - No two axes suit squares, for example because an axis is shorter than 16 elements, an output is
//   contiguous along neither axis, or the exchanged tensors are contiguous along different axes.
// - CUDA, without a choice of this family: loops are faster, because many lanes of the squares
// would
//   be empty.
std::optional<SquarePlan> planSquares(const Space& space, Target target,
                                      const KernelChoice* choice);

// Returns the parameters of a plan as a choice of the family "squares".
KernelChoice choiceOf(const SquarePlan& plan);

// Returns the program, or nullopt in these cases:
// - The kernel would exchange no tile.
// - The exchanged tiles do not fit in shared memory (CUDA) or in the cache (CPU).
// - CUDA: the body has too many operations.
//
// Whether there is a program depends on the segment, the target, the number and order of the axes,
// and which strides are 0 or 1. It does not depend on sizes.
std::optional<TileProgram> buildSquares(const Fusion& segment, const Analysis& analysis,
                                        const SquarePlan& plan, const std::string& entry);

}  // namespace heddle::codegen
