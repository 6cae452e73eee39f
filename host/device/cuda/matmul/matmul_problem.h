#pragma once

#include <cstdint>
#include <string>

#include "host/device/matmul_shape.h"

namespace heddle::host {

// One call of cublasLtMatmul but for its addresses: all on which the choice of an algorithm
// depends. c[m, n] is row-major; a and b may be transposed; strides are in elements, alignments in
// bytes.
struct MatmulProblem {
  struct Side {
    DType dtype = DType::F32;
    bool transposed = false;  // columns are dense
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

  // One line, "bf16 8192x8192x8192 ..."; parseProblem(text()) is this problem again.
  std::string text() const;
  std::string sizes() const;  // for messages
};

// InternalError when it is no text of a problem.
MatmulProblem parseProblem(const std::string& text);

// The same problem with addresses that are divisible by `bytes` at most.
MatmulProblem alignedTo(MatmulProblem problem, int64_t bytes);

}  // namespace heddle::host
