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

// The family of kernels that transpose: pointwise segments in which most tensors are contiguous
// along one axis, and some inputs or outputs along another one. These are *exchanged*.
// - CUDA: a block of threads reads a square of an exchanged input in vectors, and exchanges it
//   through shared memory. It exchanges a square of results in the same way before it stores them
//   in an exchanged output.
// - CPU: a thread transposes a square of an exchanged input into an array, computes the square row
//   by row, and transposes results into exchanged outputs. It accesses every cache line once, even
//   if the rows of a tensor are so far apart that their lines evict each other from a cache.

// How the squares of a space are laid out, without the program.
struct SquarePlan {
  Space space;  // the two axes of the squares are the last ones
  Schedule schedule;
  SquareLayout layout;
  std::vector<bool> aligned;  // of ExchangeTile or StoreExchanged, per tensor of the space
};
// Returns nullopt if no tensor needs an exchange, if the exchanged tensors disagree about their
// axis, or if an axis is short. A choice of the family "squares" changes the parameters
// that it names, as far as the space permits.
std::optional<SquarePlan> planSquares(const Space& space, Target target,
                                      const KernelChoice* choice);

// Returns the parameters of a plan. Their family is "squares".
KernelChoice choiceOf(const SquarePlan& plan);

// Returns the program. Returns nullopt if the exchanged tiles do not fit in shared memory (CUDA) or
// in the cache (CPU), or if the body has too many operations. Whether there is a program depends on
// the plan only through its number of axes, and through which strides are 0 or 1.
std::optional<TileProgram> buildSquares(const Fusion& segment, const Analysis& analysis,
                                        const SquarePlan& plan, const std::string& entry);

}  // namespace heddle::codegen
