#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Afterwards a relu of a product that nobody else reads is the product's activation: the library
// applies it before it rounds, which gives the same bits, since rounding keeps the sign, and behind
// the wrapping of integers. Other activations and a bias added behind the product would be rounded
// once less, so they stay. After insertResharding: a reduction between the two keeps them apart.
Fusion fuseEpilogue(const Fusion& fusion);

}  // namespace heddle
