#pragma once

#include <optional>
#include <vector>

#include "ir/reference/noise.h"
#include "ir/reference/reference.h"
#include "ir/reference/selection.h"

namespace heddle {

using WantedElements = std::vector<std::optional<Selection>>;  // per output of the fusion

// Returns selected elements of the outputs: tensor i has the sizes wanted[i]->sizes(). Output i is
// not evaluated if wanted[i] is empty, and tensor i then has no data. The evaluation walks the
// graph backwards to find the elements that the selected ones need, computes only these, and frees
// each value after its last use. It gives the same bits as evaluateReference(). With `noise`, every
// rounding has a random error.
// UserError if `wanted` has not one entry per output, or if an index is out of range.
std::vector<HostTensor> evaluateReferenceAt(const Fusion& fusion, const ReferenceInputs& inputs,
                                            const SizeBindings& sizes, const WantedElements& wanted,
                                            const RoundingNoise* noise = nullptr);

// The cost of evaluateReferenceAt() with the same arguments.
struct ReferenceCost {
  double operations = 0;  // elements read or computed, and multiplications of matrix products
  double bytes = 0;       // of all computed values
};
ReferenceCost referenceCostAt(const Fusion& fusion, const SizeBindings& sizes,
                              const WantedElements& wanted);

}  // namespace heddle
