#pragma once

#include <vector>

#include "host/device/cuda/matmul/matmul_problem.h"

namespace heddle::host {

// An operand that cuBLASLt cannot read or write where it lies, and the same one packed: sizes
// [batch..., rows, columns] without the batch axes over which it is stretched. Of f8 it reads a by
// rows and b by columns only.
struct Packing {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  std::vector<int64_t> packed_strides;
  int64_t bytes = 0;      // of the packed operand, rounded up to 256
  int64_t workspace = 0;  // where it lies in the workspace
  int64_t element_bytes = 0;
  bool wanted = false;
};

// A product cut into calls of cublasLtMatmul. Where it is `zeros`, there are no terms (k = 0): the
// packed a and b are zeros over a few terms, so that the epilogue still does its part.
struct MatmulLayout {
  struct Call {
    int64_t a = 0;  // bytes from where the operand begins
    int64_t b = 0;
    int64_t c = 0;
    size_t problem = 0;
  };
  bool swapped = false;  // a and b: the transposed product is computed
  bool zeros = false;
  Packing a;
  Packing b;
  Packing c;
  Packing bias;
  int64_t packed_bytes = 0;  // all packed operands together
  std::vector<MatmulProblem> problems;
  std::vector<Call> calls;
};

// All sizes are positive but k, which may be 0.
MatmulLayout layoutMatmul(const MatmulSpec& spec);

}  // namespace heddle::host
