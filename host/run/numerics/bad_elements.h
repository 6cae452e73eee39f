#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/dtype.h"
#include "ir/types/tensor.h"

namespace heddle::host {

// The numbers of bad elements of a tensor. An element is bad if it is NaN or infinite.
struct BadElements {
  int64_t elements = 0;  // number of all elements of the tensor
  int64_t nan = 0;
  int64_t infinite = 0;
  // The index of the first bad element, in row-major order of the axes. Empty if there is none, or
  // if the tensor has no axes.
  std::vector<int64_t> first;

  int64_t count() const { return nan + infinite; }
};

// Returns the bad elements of a tensor in host memory. The dtype of the tensor must be a float
// type.
BadElements countBad(const std::byte* memory, const TensorDesc& desc);
// Returns the bad elements of a scalar, which counts as a tensor of one element. An integer is
// never bad.
BadElements countBad(const Scalar& value);

// Returns a text such as "3 of 64 elements (2 NaN, 1 infinite), the first at [0, 17]".
std::string describe(const BadElements& bad);

}  // namespace heddle::host
