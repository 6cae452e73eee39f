#pragma once

#include <cstdint>
#include <string>

#include "host/device/matmul_shape.h"

namespace heddle::host {

// The parameters of one call of cublasLtMatmul, except the addresses and the algorithm. A measured
// choice of an algorithm is stored for these parameters, the GPU model, the version of cuBLASLt and
// kTimedChoice (host/device/timed_choice.h). c[m, n] is row-major; a and b may be transposed.
// Strides are in elements, alignments in bytes.
struct MatmulProblem {
  struct Side {
    DType dtype = DType::F32;
    bool transposed = false;  // true: the columns are dense; false: the rows are dense
    int64_t ld = 1;           // stride from one dense row (column) to the next
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
  int32_t spare_sms = 0;       // number of SMs left to concurrent work
  bool operator==(const MatmulProblem&) const = default;

  // Returns all members as one line of text, such as "8192 8192 8192 1 bf16 0 8192 ...".
  // parseProblem() parses this text.
  std::string text() const;
  // Returns the dtypes and sizes as a text for messages.
  std::string sizes() const;
};

// Parses a result of MatmulProblem::text(). Throws InternalError if it cannot parse the text.
MatmulProblem parseProblem(const std::string& text);

// Returns a matrix product that consists of this problem alone: its operands have the axes
// [batches, rows, columns], and the bias has one axis.
MatmulSpec specOf(const MatmulProblem& problem);

// Returns the problem with each alignment reduced to at most `bytes`, but not below the size of an
// element.
MatmulProblem alignedTo(MatmulProblem problem, int64_t bytes);

}  // namespace heddle::host
