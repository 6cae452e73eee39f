#pragma once

#include <cstdint>
#include <string>

#include "host/device/matmul_shape.h"

namespace heddle::host {

// One call of cublasLtMatmul without its addresses. It contains everything on which the choice of
// an algorithm depends. c[m, n] is row-major; a and b may be transposed. Strides are in elements,
// alignments in bytes.
struct MatmulProblem {
  struct Side {
    DType dtype = DType::F32;
    bool transposed = false;  // the columns are dense
    int64_t ld = 1;
    int64_t batch_stride = 0;
    int64_t alignment = 256;
    bool operator==(const Side&) const = default;
  };
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t batches = 1;
  Side a;
  Side b;
  Side c;
  bool tf32 = false;
  Activation activation = Activation::None;
  int64_t bias_alignment = 0;  // 0: no bias
  int32_t spare_sms = 0;       // MatmulSpec::spare_sms
  bool operator==(const MatmulProblem&) const = default;

  // Returns all members as one line, "8192 8192 8192 1 bf16 0 8192 ...". parseProblem(text())
  // equals this problem.
  std::string text() const;
  std::string sizes() const;  // for messages
};

// Parses the result of text(). InternalError for any other text.
MatmulProblem parseProblem(const std::string& text);

// Returns the problem with each alignment reduced to `bytes` if it is larger. An alignment is at
// least the size of an element.
MatmulProblem alignedTo(MatmulProblem problem, int64_t bytes);

}  // namespace heddle::host
