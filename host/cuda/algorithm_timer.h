#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "host/cuda/lazy_kernel.h"
#include "host/cuda/lt_matmul.h"

namespace heddle::host {

// Times the algorithms of one product on memory of its own, filled with numbers between -1 and 1
// (zeros would draw less power and run at a higher clock than real data). Thread-safe.
class AlgorithmTimer {
 public:
  AlgorithmTimer();

  // Index of the winner of a race (host/algorithm_race.h), which takes about half a second, and ten
  // runs of each algorithm, when the product is large; 0 when there is no memory for the operands
  // or none runs. Waits for what `stream` holds, and must not be called while it is being captured.
  size_t fastest(const LtMatmul& matmul, const MatmulProblem& problem,
                 const std::vector<LtMatmul::Algorithm>& algorithms,
                 const codegen::KernelCompiler& compiler, cudaStream_t stream);

  // Launches one, on memory of its own and of any contents, and waits for it: a GPU loads a
  // library's kernel at its first launch. Does nothing where there is no memory.
  static void load(const LtMatmul& matmul, const MatmulProblem& problem,
                   const LtMatmul::Algorithm& algorithm, cudaStream_t stream);

 private:
  LazyKernel fill_;
};

}  // namespace heddle::host
