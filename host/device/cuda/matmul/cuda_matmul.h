#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "host/device/choice_cache.h"
#include "host/device/cuda/kernel/strided_copy.h"
#include "host/device/cuda/matmul/fallback_matmul_kernels.h"
#include "host/device/cuda/matmul/matmul_layout.h"
#include "host/device/cuda/matmul/matmul_timer.h"
#include "host/device/matmul_shape.h"

namespace heddle::host {

// Matrix products of one device. Through cuBLASLt: f32 in full f32 unless tf32 is asked for, f64,
// and the half types, which accumulate in f32; bias and activation as epilogues, but gelu of f64,
// for which a kernel of heddle's follows. Operands with strides that cuBLASLt cannot read are
// packed into workspace. f8 as libraryPart() says, without fast accumulation: on sm_90 tensor cores
// keep fewer bits than f32 has between the terms that cuBLASLt adds up in f32. Through heddle's own
// kernel: integers, bools, and other f8. Thread-safe.
//
// Of the algorithms that cuBLASLt's heuristic proposes, choose() times the first kCandidates once a
// problem and device and remembers the fastest, also on disk: of large products the fastest when
// they come one after the other, which costs about half a second (host/device/timed_choice.h).
// HEDDLE_MATMUL_TIMING=0 turns that off, and nothing is timed while the stream is being captured:
// the first proposal is taken then.
class CudaMatmul {
 public:
  static constexpr int kCandidates = 16;
  static constexpr size_t kWorkspaceBytes = size_t{32} << 20;

  // `compiler` outlives this. The device is current in the constructor and in every call but
  // PreparedMatmul::run().
  CudaMatmul(int device, const codegen::KernelCompiler& compiler);
  ~CudaMatmul();
  CudaMatmul(const CudaMatmul&) = delete;
  CudaMatmul& operator=(const CudaMatmul&) = delete;

  // As Device's.
  std::set<std::string> questions(const MatmulSpec& spec) const;
  std::string choose(const std::string& question, cudaStream_t stream);
  std::shared_ptr<const PreparedMatmul> prepare(const MatmulSpec& spec,
                                                const AlgorithmChoices& choices);

 private:
  // Whether cuBLASLt has any for each call, whatever the alignment that f8 needs at least.
  bool hasAlgorithms(const MatmulLayout& layout) const;
  std::shared_ptr<const PreparedMatmul> prepareOwn(const MatmulSpec& spec);

  int device_;
  bool has_float8_ = false;
  const codegen::KernelCompiler& compiler_;
  cublasLtHandle_t handle_ = nullptr;
  StridedCopy copy_;
  FallbackMatmulKernels own_;
  // Once a question: what the run would load at its first launch, which waits for the GPU then.
  void load(const std::string& question, const LtMatmul& matmul, const MatmulProblem& problem,
            const LtMatmul::Algorithm& algorithm, cudaStream_t stream);

  AlgorithmTimer timer_;
  std::mutex loaded_mutex_;
  std::set<std::string> loaded_;
  std::unique_ptr<ChoiceCache> store_;
};

}  // namespace heddle::host
