#pragma once

#include <optional>
#include <vector>

#include "ir/reference/noise.h"
#include "ir/reference/reference.h"
#include "ir/reference/selection.h"

namespace heddle {

using WantedElements = std::vector<std::optional<Selection>>;  // per output of the fusion

// Returns the selected elements of each output. Tensor i of the result contains the elements
// wanted[i] of output i and has the sizes wanted[i]->sizes(). If wanted[i] is nullopt, tensor i has
// no data, and output i is evaluated only where selected elements of other outputs depend on it.
//
// The evaluation first walks the graph backwards to find the elements that the selected elements
// depend on. It then computes these elements, and possibly some more (Needs::computed in
// ir/reference/needs.h, and Selection::add()). It frees each value after its last use. If `noise`
// is nullptr, the returned elements have the same bits as in the results of evaluateReference().
// Otherwise random errors are added to the values (ir/reference/noise.h).
//
// Throws the same errors as evaluateReference(), except that it does not check inputs and
// expressions on which no selected element depends. (It does check all guards, and the inputs that
// decide sizes.) Also throws UserError if `wanted` does not have one entry per output, if an entry
// does not have one IndexSet per axis, or if an index is out of range.
std::vector<HostTensor> evaluateReferenceAt(const Fusion& fusion, const ReferenceInputs& inputs,
                                            const SizeBindings& sizes, const WantedElements& wanted,
                                            const RoundingNoise* noise = nullptr);

// The cost of an evaluation.
struct ReferenceCost {
  // Sum over the expressions: the number of elements that the expression computes or the number
  // that it reads, whichever is larger. A matrix product counts its multiplications as computed
  // elements.
  double operations = 0;
  double bytes = 0;  // size of all elements that expressions compute
};
// Returns the cost of evaluateReferenceAt() for the same elements.
ReferenceCost referenceCostAt(const Fusion& fusion, const SizeBindings& sizes,
                              const WantedElements& wanted);

}  // namespace heddle
