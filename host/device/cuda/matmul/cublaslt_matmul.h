#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <optional>
#include <string>
#include <vector>

#include "host/device/cuda/matmul/matmul_problem.h"

namespace heddle::host {

// The descriptors of one cublasLtMatmul, a plain value. cuBLASLt's matrices are column-major, so it
// computes c^T = b^T a^T: its first operand is b. Immutable once made; the handle outlives it.
class LtMatmul {
 public:
  struct Algorithm {
    cublasLtMatmulAlgo_t algorithm{};
    size_t workspace_bytes = 0;
  };

  // Of f8: a lies by rows and b by columns, of whole 16 bytes.
  LtMatmul(cublasLtHandle_t handle, const MatmulProblem& problem);

  // Up to `most` algorithms of the heuristic, the most promising first; none when there are none.
  std::vector<Algorithm> candidates(int most, size_t workspace_bytes) const;
  // The algorithm that text() wrote, when it fits this problem on this GPU with that workspace.
  std::optional<Algorithm> fromText(const std::string& text, size_t workspace_bytes) const;
  static std::string text(const Algorithm& algorithm);

  cublasStatus_t tryRun(const Algorithm& algorithm, const MatmulOperands& operands,
                        cudaStream_t stream) const;
  // UserError naming cublasLtMatmul.
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
