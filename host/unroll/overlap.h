#pragma once

#include <cstdint>

#include "host/unroll/unroll.h"

namespace heddle::host {

// A tensor in memory. `begin` is the address of its first element, relative to an address that all
// tensors of a comparison share.
struct TensorInMemory {
  const TensorDesc& desc;
  int64_t begin;
};

// Returns whether the tensors certainly have no byte in common. The function recognizes two cases.
// Either the byte ranges of the tensors do not overlap, or both tensors are slices of one tensor
// along an inner axis (different columns of a grid).
bool areApart(const TensorInMemory& a, const TensorInMemory& b);

// Returns whether two views of an unrolled program certainly have no byte in common. Addresses that
// depend on late inputs are compared only if both depend on them in the same way.
bool areApart(const View& a, const View& b);

// Returns whether both views are the same elements at the same addresses.
bool isSameView(const View& a, const View& b);

// Returns whether two elements of a tensor may have the same address. They cannot if the stride of
// each axis is larger than the extent in memory of all axes with smaller strides. Axes of one
// element do not count.
bool mayOverlapItself(const TensorDesc& desc);

}  // namespace heddle::host
