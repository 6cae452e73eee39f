#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <optional>
#include <string>
#include <vector>

#include "host/device/cuda/matmul/matmul_problem.h"

namespace heddle::host {

// The descriptors of one call of cublasLtMatmul. The addresses and the algorithm are passed to
// run(). cuBLASLt expects column-major matrices. To get a row-major c, this class computes c^T =
// b^T a^T. The first operand that it passes to cuBLASLt is therefore b. The object is immutable.
// `handle` must outlive the object.
class LtMatmul {
 public:
  struct Algorithm {
    cublasLtMatmulAlgo_t algorithm{};
    size_t workspace_bytes = 0;  // workspace that the algorithm needs
  };

  // For f8, the rows of a and the columns of b must be dense, and k and n must be multiples of 16.
  // All other strides of a, b and c must then be multiples of 16 bytes.
  LtMatmul(cublasLtHandle_t handle, const MatmulProblem& problem);

  // Returns up to `most` algorithms that the heuristic of cuBLASLt proposes, the most promising
  // first. Each algorithm needs at most `workspace_bytes` bytes of workspace. If the activation is
  // relu, the function leaves out algorithms that turn NaN into 0. Returns an empty list if there
  // is no suitable algorithm.
  std::vector<Algorithm> candidates(int most, size_t workspace_bytes) const;
  // Returns the algorithm that `text`, a result of text(), describes. Returns nullopt if `text` is
  // no such result, or if the algorithm cannot compute this matrix product on this GPU with
  // `workspace_bytes` bytes of workspace.
  std::optional<Algorithm> fromText(const std::string& text, size_t workspace_bytes) const;
  // Returns a text that identifies the algorithm.
  static std::string text(const Algorithm& algorithm);

  // Enqueues the matrix product and returns the status of the call.
  cublasStatus_t tryRun(const Algorithm& algorithm, const MatmulOperands& operands,
                        cudaStream_t stream) const;
  // Does the same as tryRun(), but throws UserError if the call fails.
  void run(const Algorithm& algorithm, const MatmulOperands& operands, cudaStream_t stream) const;

 private:
  void setEpilogue(const MatmulProblem& problem);

  cublasLtHandle_t handle_;
  MatmulProblem problem_;
  bool f64_;
  cublasLtMatmulDescOpaque_t operation_{};
  cublasLtMatrixLayoutOpaque_t first_{};
  cublasLtMatrixLayoutOpaque_t second_{};
  cublasLtMatrixLayoutOpaque_t result_{};
};

}  // namespace heddle::host
