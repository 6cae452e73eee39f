#pragma once

#include <vector>

#include "host/device/cuda/matmul/matmul_problem.h"

namespace heddle::host {

// Describes the packed copy of an operand that cuBLASLt cannot read or write in place. The sizes
// are [batch..., rows, columns]. They leave out the batch axes along which the operand is
// broadcast. For f8, cuBLASLt requires dense rows of a and dense columns of b.
struct Packing {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  std::vector<int64_t> packed_strides;
  int64_t bytes = 0;      // of the packed operand, rounded up to 256
  int64_t workspace = 0;  // offset of the packed operand in the workspace, in bytes
  int64_t element_bytes = 0;
  bool wanted = false;  // false: the operand is used in place
};

// A matrix product, split into calls of cublasLtMatmul.
struct MatmulLayout {
  struct Call {
    int64_t a = 0;  // byte offset of the call's matrix in the operand
    int64_t b = 0;
    int64_t c = 0;
    size_t problem = 0;  // index in `problems`
  };
  bool swapped = false;  // a and b are swapped: the transposed matrix product is computed
  // True if k = 0, so that every sum is empty. The packed a and b then have a few terms that are
  // zero, because cuBLASLt must still apply the epilogue.
  bool zeros = false;
  Packing a;
  Packing b;
  Packing c;
  Packing bias;
  int64_t packed_bytes = 0;  // all packed operands together
  std::vector<MatmulProblem> problems;
  std::vector<Call> calls;
};

// Returns the layout. k may be 0; all other sizes must be positive.
MatmulLayout layoutMatmul(const MatmulSpec& spec);

}  // namespace heddle::host
