#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "host/device/cuda/kernel/lazy_kernel.h"
#include "host/device/cuda/matmul/cublaslt_matmul.h"

namespace heddle::host {

// Measures the algorithms of matrix products on its own memory. It fills the operands with random
// numbers between -1 and 1, because zeros would draw less power and allow a higher clock than real
// data. Thread-safe.
class AlgorithmTimer {
 public:
  AlgorithmTimer();

  // The most finals (host/device/timed_choice.h) for matrix products that differ only in their
  // number of rows. Without this limit, a job whose sizes change often would spend half a second on
  // each new size.
  static constexpr int kFinals = 8;

  // Returns the index of the fastest algorithm (host/device/timed_choice.h). Returns 0 if no
  // algorithm can run, or if there is no memory for the operands.
  // - The measurement of a large matrix product takes about half a second if it includes a final.
  //   Before the final, an algorithm that takes more than 1 ms runs at most ten times.
  // - The call waits for the work on `stream`. The stream must not be captured.
  size_t fastest(const LtMatmul& matmul, const MatmulProblem& problem,
                 const std::vector<LtMatmul::Algorithm>& algorithms,
                 const codegen::KernelCompiler& compiler, cudaStream_t stream);

  // Launches an algorithm on uninitialised memory and waits for it, so that the GPU loads the
  // kernel. Does nothing if there is not enough memory.
  static void load(const LtMatmul& matmul, const MatmulProblem& problem,
                   const LtMatmul::Algorithm& algorithm, cudaStream_t stream);

 private:
  bool mayHaveFinal(MatmulProblem problem);

  LazyKernel fill_;
  std::mutex mutex_;
  std::map<std::string, int> finals_;  // finals so far, by the text of the problem with m = 0
};

}  // namespace heddle::host
