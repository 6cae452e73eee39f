#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Afterwards results that nobody else orders lie as what they are made of, where that has a hinted
// order: those of pointwise ops whose operands with all axes have the same one, and of products of
// such rows with a matrix, as far as only these ops read them. So rows that a collective wants in
// another order than row-major stay in it from product to product, and batches and tokens remain
// one axis in memory. Here, because the hints of communication stand, and before views are packed.
Fusion followOrders(const Fusion& fusion);

}  // namespace heddle
