#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "host/device/cuda/kernel/lazy_kernel.h"
#include "host/device/cuda/matmul/cublaslt_matmul.h"

namespace heddle::host {

// Times the algorithms of one product on memory of its own, filled with numbers between -1 and 1
// (zeros would draw less power and run at a higher clock than real data). Thread-safe.
class AlgorithmTimer {
 public:
  AlgorithmTimer();

  // Of the numbers of rows of one product, so many have a final: jobs whose sizes change all the
  // time would else spend half a second on each.
  static constexpr int kFinals = 8;

  // Index of the winner of a race (host/device/timed_choice.h), which takes about half a second,
  // and ten runs of each algorithm, when the product is large and has its final; 0 when there is no
  // memory for the operands or none runs. Waits for what `stream` holds, and must not be called
  // while it is being captured.
  size_t fastest(const LtMatmul& matmul, const MatmulProblem& problem,
                 const std::vector<LtMatmul::Algorithm>& algorithms,
                 const codegen::KernelCompiler& compiler, cudaStream_t stream);

  // Launches one, on memory of its own and of any contents, and waits for it: a GPU loads a
  // library's kernel at its first launch. Does nothing where there is no memory.
  static void load(const LtMatmul& matmul, const MatmulProblem& problem,
                   const LtMatmul::Algorithm& algorithm, cudaStream_t stream);

 private:
  bool mayHaveFinal(MatmulProblem problem);

  LazyKernel fill_;
  std::mutex mutex_;
  std::map<std::string, int> finals_;  // that there were, by product without rows
};

}  // namespace heddle::host
