#pragma once

#include <cstdint>

#include "host/unroll/unroll.h"

namespace heddle::host {

// A tensor in memory. `begin` is the address of its first element, relative to an address that all
// tensors of a comparison share.
struct PlacedTensor {
  const TensorDesc& desc;
  int64_t begin;
};

// Returns whether the tensors certainly have no byte in common. This is recognized if their ranges
// of bytes do not overlap, and if they are in different columns of a grid: slices of one tensor
// along an inner axis.
bool areApart(const PlacedTensor& a, const PlacedTensor& b);

// Returns whether two views of an unrolled program certainly have no byte in common. Addresses that
// depend on late inputs are compared only if both depend on them in the same way.
bool areApart(const View& a, const View& b);

// Returns whether both views are the same elements in the same places.
bool isSameView(const View& a, const View& b);

// Returns whether two elements of a tensor may be in the same place: the strides of its axes with
// several elements, from the smallest on, do not each step over all smaller axes.
bool mayOverlapItself(const TensorDesc& desc);

}  // namespace heddle::host
