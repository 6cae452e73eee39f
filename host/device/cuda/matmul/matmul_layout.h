#pragma once

#include <vector>

#include "host/device/cuda/matmul/matmul_problem.h"

namespace heddle::host {

// Describes the packed copy of an operand that cuBLASLt cannot read or write in place. A packed
// matrix has dense rows. Exception: a packed b of f8 has dense columns, because cuBLASLt requires
// them. The axes are [batch..., rows, columns], without the batch axes along which the operand is
// broadcast. A packed bias has the axes [1, n]. Strides are in elements.
struct Packing {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;         // strides of the operand
  std::vector<int64_t> packed_strides;  // strides of the packed operand
  int64_t bytes = 0;                    // size of the packed operand, a multiple of 256
  int64_t workspace = 0;                // offset of the packed operand in the workspace, in bytes
  int64_t element_bytes = 0;
  bool wanted = false;  // true: the operand is packed; false: it is used in place
};

// A matrix product, split into calls of cublasLtMatmul.
struct MatmulLayout {
  struct Call {
    // Offset of the call's first matrix in each operand, in bytes. If the operand is packed, this
    // is an offset in the packed copy.
    int64_t a = 0;
    int64_t b = 0;
    int64_t c = 0;
    size_t problem = 0;  // index in `problems`
  };
  // true: the layout is that of c^T = b^T a^T. All members named `a` then describe b^T, and all
  // members named `b` describe a^T.
  bool swapped = false;
  // true: k is 0, so every sum is empty and equals 0. cuBLASLt must still apply the bias and the
  // activation to the sums. `problems` therefore have a small positive k, and a run fills the
  // packed a and b with zeros instead of copying a and b.
  bool zeros = false;
  Packing a;
  Packing b;
  Packing c;
  Packing bias;
  int64_t packed_bytes = 0;             // total size of the packed operands
  std::vector<MatmulProblem> problems;  // all different; calls with equal parameters share one
  std::vector<Call> calls;
};

// Returns the layout of a matrix product. k may be 0; all other sizes must be positive. Throws
// UserError under the conditions of matmulShape() (host/device/matmul_shape.h).
MatmulLayout layoutMatmul(const MatmulSpec& spec);

}  // namespace heddle::host
