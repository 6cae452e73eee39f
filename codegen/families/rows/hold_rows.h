#pragma once

#include <optional>

#include "codegen/families/rows/row_candidates.h"
#include "codegen/plan/space.h"

namespace heddle::codegen {

// What a Cuda kernel keeps of a row for later sweeps (Hold).

// Returns whether the threads of the candidate need so many registers, or its block so many
// threads, that few blocks share a multiprocessor. `keeps_values`: the candidate also keeps values
// that are expensive to compute. On an H200, threads with up to 5 vectors of 8 elements used at
// most 64 registers. With 7 vectors, norms with the row in shared memory took 0.62 to 0.68 times as
// long as norms with the row in registers. For clusters and vectors of 4 elements, softmax, which
// keeps exponentials, took 1.03 to 1.09 times as long in shared memory, but layer_norm 0.94 times.
// Clusters with vectors of 2 elements (f64) were not measured: in registers, some kernels spill.
bool isHeavy(const RowCandidate& candidate, bool keeps_values);

// Returns `loaded`, `loaded` with its row in shared memory, or `chosen` if neither is better. Call
// this if `chosen` is looped or heavy (isHeavy()). `loaded` keeps no computed values, so it needs
// fewer registers. If two blocks share a multiprocessor, one loads while the other one computes.
RowCandidate withLoadedRow(const RowCandidate& chosen, const std::optional<RowCandidate>& loaded,
                           const Space& rows, const RowDemand& demand, bool is_chosen);

// Returns the candidate that keeps `hold` for later sweeps, or `chosen` if that is impossible.
RowCandidate withHold(const RowCandidate& chosen, const std::optional<RowCandidate>& loaded,
                      const Space& rows, const RowDemand& demand, Hold hold, bool is_chosen);

}  // namespace heddle::codegen
