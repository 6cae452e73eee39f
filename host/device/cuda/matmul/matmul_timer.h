#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "host/device/cuda/kernel/lazy_kernel.h"
#include "host/device/cuda/matmul/cublaslt_matmul.h"

namespace heddle::host {

// Measures algorithms for matrix products. The timer allocates all operands, and fills a, b and the
// bias with random numbers between -1 and 1. With zeros, the GPU would draw less power and run at a
// higher clock than with real data. Thread-safe.
class AlgorithmTimer {
 public:
  AlgorithmTimer();

  // Among matrix products that differ only in their number of rows, only the first kFinals
  // measurements may include a final (host/device/timed_choice.h). Without this limit, a job whose
  // sizes change often would spend half a second on each new size.
  static constexpr int kFinals = 8;

  // Returns the index of the fastest way to compute the problem (host/device/timed_choice.h): the
  // index of an algorithm, or the number of algorithms for `own`. `own` computes the same matrix
  // product with one of heddle's own kernels; nullptr: it takes no part. Returns 0 if no algorithm
  // can run, or if there is not enough memory for the operands. If there are at least two ways and
  // enough memory:
  // - The measurement takes about half a second if it includes a final. An algorithm that takes
  //   more than 1 ms runs at most ten times before the final.
  // - The call waits until all work on `stream` is done. Do not call it while a CUDA graph is being
  //   captured from the stream.
  size_t fastest(const LtMatmul& matmul, const MatmulProblem& problem,
                 const std::vector<LtMatmul::Algorithm>& algorithms, const PreparedMatmul* own,
                 const codegen::KernelCompiler& compiler, cudaStream_t stream);

  // Launches an algorithm on uninitialised memory and waits until it is done, so that CUDA loads
  // its kernel now. Does nothing if there is not enough memory.
  static void load(const LtMatmul& matmul, const MatmulProblem& problem,
                   const LtMatmul::Algorithm& algorithm, cudaStream_t stream);

 private:
  // Adds a measurement of this problem to `finals_`. Returns whether kFinals allows a final in this
  // measurement.
  bool mayHaveFinal(MatmulProblem problem);

  LazyKernel fill_;
  std::mutex mutex_;
  // Number of measurements so far, for all problems that differ only in m. The key is
  // MatmulProblem::text() of the problem with m = 0.
  std::map<std::string, int> finals_;
};

}  // namespace heddle::host
