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
// search for a common byte has reached a limit (see sharingOf()).
enum class Sharing : uint8_t { Nothing, Bytes, Unknown };

// Finds out whether two tensors have a byte in common. The answer is exact, except in two cases, in
// which it may be Unknown:
// - The function has tried a limited number of elements without a result. This can happen if the
//   tensors have different strides, for example if neither of two strides divides the other, such
//   as 6 and 10 elements.
// - The tensors have more than 32 different strides, so the function tries no elements.
// Allocates no memory.
Sharing sharingOf(const TensorInMemory& a, const TensorInMemory& b);

// Returns whether the tensors certainly have no byte in common.
bool areApart(const TensorInMemory& a, const TensorInMemory& b);

// Returns whether two views of an unrolled program certainly have no byte in common. Returns false
// for two nonempty views of one buffer whose addresses depend on late inputs
// (host/unroll/late_scalars.h) in different ways.
bool areApart(const View& a, const View& b);

// Returns whether both views have the same dtype and sizes, and each element has the same address
// in both.
bool isSameView(const View& a, const View& b);

// Returns whether two elements of a tensor may have the same address. Returns false if the tensor
// is empty. Otherwise the function sorts the axes by stride, without the axes of one element. It
// returns false if each stride is larger than the distance from the first to the last element along
// the axes before it. May return true for a tensor whose elements do not overlap.
bool mayOverlapItself(const TensorDesc& desc);

}  // namespace heddle::host
