#pragma once

#include <optional>
#include <string>

#include "codegen/plan/analysis.h"
#include "codegen/plan/space.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// The family of kernels that transpose: pointwise segments whose outputs are contiguous along one
// axis, and some inputs along another one.
// - CUDA: a block of threads reads a square of these inputs in vectors, exchanges it through shared
//   memory, and stores the outputs in vectors.
// - CPU: a thread transposes a square of these inputs into an array, and then computes the square
//   row by row. It reads every cache line once, even if the rows of the inputs are so far apart
//   that their lines evict each other from a cache.

// Returns whether buildSquares() may return a program for this space.
bool mayHaveSquares(const Space& space);

// Returns the program, or nullopt if the family does not suit the segment. The family does not suit
// a segment in these cases:
// - No input needs an exchange.
// - The outputs, or the exchanged inputs, are contiguous along different axes.
// - An axis is short.
// - The exchanged tiles do not fit in shared memory (CUDA) or in the cache (CPU).
std::optional<TileProgram> buildSquares(const Fusion& segment, const Analysis& analysis,
                                        const Space& space, Target target,
                                        const std::string& entry);

}  // namespace heddle::codegen
