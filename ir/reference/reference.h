#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ir/graph/fusion.h"
#include "ir/reference/noise.h"
#include "ir/reference/selection.h"
#include "ir/types/host_tensor.h"

namespace heddle {

// The reference evaluation defines the meaning of a fusion. It is simple and slow. The results of
// every device are compared with its results. It computes floats in double, and integers and bools
// in int64. It then rounds each value to its dtype. It ignores shardings, because they do not
// affect values.

// The inputs of a run, by value id. Tensors are unsharded. A scalar that is missing has its default
// value.
struct ReferenceInputs {
  std::map<ValueId, HostTensor> tensors;
  std::map<ValueId, Scalar> scalars;
};

// Returns all outputs in order. A scalar output is a 0-d tensor. The evaluation frees each value
// after its last use.
std::vector<HostTensor> evaluateReference(const Fusion& fusion, const ReferenceInputs& inputs,
                                          const SizeBindings& sizes);

// Returns selected elements of the outputs: tensor i has the sizes wanted[i]->sizes(). Output i is
// not evaluated if wanted[i] is empty, and tensor i then has no data. The evaluation walks the
// graph backwards to find the elements that the selected ones need, computes only these, and frees
// each value after its last use. It gives the same bits as evaluateReference(). With `noise`, every
// rounding has a random error.
// UserError if `wanted` has not one entry per output, or if an index is out of range.
using WantedElements = std::vector<std::optional<Selection>>;
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

// Returns the index of the last expression that reads each value. For outputs it is past the end.
IdVector<ValueId, ExprId> lastUses(const Fusion& fusion);

// Returns the values of all scalars: inputs, constants, sizes and arithmetic on them.
std::map<ValueId, Scalar> evaluateScalars(const Fusion& fusion, const ReferenceInputs& inputs,
                                          const SizeBindings& sizes);

}  // namespace heddle
