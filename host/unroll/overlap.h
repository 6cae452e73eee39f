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

// Says whether two tensors have a byte in common. Unknown: their memory ranges overlap, and the
// search for a common byte ended at its limit.
enum class Sharing : uint8_t { Nothing, Bytes, Unknown };

// Finds out whether two tensors have a byte in common. The answer is exact, except for strides of
// which neither divides the other, such as 6 and 10 elements. For these strides the function tries
// a limited number of elements. The function allocates no memory.
Sharing sharingOf(const TensorInMemory& a, const TensorInMemory& b);

// Returns whether the tensors certainly have no byte in common.
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
