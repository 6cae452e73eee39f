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

// Computes the matrix products of one device. Thread-safe.
//
// cuBLASLt computes:
// - f32 (in full f32, unless tf32 is requested), f64, and the half types, which accumulate in f32.
// - f8, if libraryPart() (host/device/fallback_matmul.h) allows it, without fast accumulation.
//   cuBLASLt adds partial sums in f32. On sm_90 the tensor cores compute each partial sum with
//   fewer bits than f32 has.
// - bias and activation, as epilogues. Exceptions are the gelu of f64, and the bias and activation
//   of f8 with an f32 result. For these, one of heddle's own kernels runs after cuBLASLt.
// Operands whose strides cuBLASLt cannot read are packed into the workspace.
//
// heddle's own kernels compute integers, bools, and all other f8 matrix products.
//
// Choice of algorithms. choose() measures the first kCandidates algorithms that the heuristic of
// cuBLASLt proposes, once per problem and device. It stores the fastest one in memory and on disk.
// For large matrix products it measures consecutive runs, which takes about half a second
// (host/device/timed_choice.h). HEDDLE_MATMUL_TIMING=0 disables the choice. While the stream is
// captured, choose() measures nothing and uses only stored choices. Without a choice, prepare()
// uses the first proposal.
class CudaMatmul {
 public:
  static constexpr int kCandidates = 16;
  static constexpr size_t kWorkspaceBytes = size_t{32} << 20;

  // `compiler` must outlive this object. The device must be current in the constructor and in every
  // call except PreparedMatmul::run().
  CudaMatmul(int device, const codegen::KernelCompiler& compiler);
  ~CudaMatmul();
  CudaMatmul(const CudaMatmul&) = delete;
  CudaMatmul& operator=(const CudaMatmul&) = delete;

  // Implement algorithmQuestions(), chooseAlgorithm() and prepareMatmul() of Device.
  std::set<std::string> questions(const MatmulSpec& spec) const;
  std::string choose(const std::string& question, cudaStream_t stream);
  std::shared_ptr<const PreparedMatmul> prepare(const MatmulSpec& spec,
                                                const AlgorithmChoices& choices);

 private:
  // Returns whether cuBLASLt has an algorithm for each call, for the expected alignments of the
  // operands and for alignments of 16 bytes, which f8 needs at least.
  bool hasAlgorithms(const MatmulLayout& layout) const;
  std::shared_ptr<const PreparedMatmul> prepareOwn(const MatmulSpec& spec);

  int device_;
  bool has_float8_ = false;
  const codegen::KernelCompiler& compiler_;
  cublasLtHandle_t handle_ = nullptr;
  StridedCopy copy_;
  FallbackMatmulKernels own_;
  // Launches the algorithm once per question, so that the GPU loads its kernel now. Otherwise the
  // first launch of a run would load it, and would wait for the GPU.
  void load(const std::string& question, const LtMatmul& matmul, const MatmulProblem& problem,
            const LtMatmul::Algorithm& algorithm, cudaStream_t stream);

  AlgorithmTimer timer_;
  std::mutex loaded_mutex_;
  std::set<std::string> loaded_;
  std::unique_ptr<ChoiceCache> store_;
};

}  // namespace heddle::host
