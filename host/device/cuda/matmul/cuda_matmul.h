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
// - matrix products of f32, f64, f16 and bf16. Sums of f64 elements are accumulated in f64, all
//   other sums in f32. f32 operands keep their precision, unless tf32 is requested.
// - matrix products of f8, if libraryPart() (host/device/fallback_matmul.h) allows it and cuBLASLt
//   has an algorithm. Fast accumulation is off, so cuBLASLt adds partial sums in f32. On sm_90, the
//   tensor cores compute each partial sum with fewer bits than f32 has.
// - the bias and the activation, as epilogues of these matrix products. There are two exceptions:
//   the gelu of f64, and the bias and activation of f8 with an f32 result. One of heddle's own
//   kernels applies these after the call of cuBLASLt.
// Operands that cuBLASLt cannot use in place are packed into the workspace (matmul_layout.h).
//
// heddle's own kernels compute the matrix products of integers and bools, and the f8 matrix
// products that cuBLASLt does not compute.
//
// Choice of algorithms. A matrix product needs one or more calls of cuBLASLt. A MatmulProblem
// (host/device/cuda/matmul/matmul_problem.h) holds the parameters of one call. Its text is a
// *question* (see AlgorithmChoices in host/device/device.h). questions() returns the questions of a
// matrix product. choose() answers one question: it measures the first kCandidates algorithms that
// the heuristic of cuBLASLt proposes, and stores the fastest one in memory and on disk. If the
// problem is small (kMostOwnProducts), heddle's own kernel takes part in the measurement; kOwn
// stands for it. prepare() uses the own kernel only if all calls have equal parameters, so that the
// matrix product has one question. A later call for the same question, GPU model and cuBLASLt
// version returns the stored choice, if cuBLASLt accepts it. For a large matrix product, the
// measurement takes about half a second (host/device/timed_choice.h).
// - If the environment variable HEDDLE_LIBRARY_TIMING is 0, questions() returns an empty set, and
//   the caller does not call choose().
// - While a CUDA graph is captured from the stream, choose() does not measure: it returns the
//   stored choice, or "" if there is none.
// - If the caller passes no choice to prepare(), or a choice that cuBLASLt does not accept,
//   prepare() uses the first proposal of the heuristic.
class CudaMatmul {
 public:
  static constexpr int kCandidates = 16;
  // heddle's own kernel uses no tensor cores, so it takes part only in measurements of small
  // problems. The unit is multiplications of two elements.
  static constexpr double kMostOwnProducts = 1 << 27;
  static constexpr const char* kOwn = "own";
  static constexpr size_t kWorkspaceBytes = size_t{32} << 20;

  // `compiler` must outlive this object. `device` must be the current CUDA device in the
  // constructor and in every call of this class. It need not be current when PreparedMatmul::run()
  // is called.
  CudaMatmul(int device, const codegen::KernelCompiler& compiler);
  ~CudaMatmul();
  CudaMatmul(const CudaMatmul&) = delete;
  CudaMatmul& operator=(const CudaMatmul&) = delete;

  // These functions implement algorithmQuestions(), chooseAlgorithm() and prepareMatmul() of
  // Device.
  std::set<std::string> questions(const MatmulSpec& spec) const;
  std::string choose(const std::string& question, cudaStream_t stream, const std::string& given);
  std::shared_ptr<const PreparedMatmul> prepare(const MatmulSpec& spec,
                                                const AlgorithmChoices& choices);

 private:
  // An f8 matrix product may need several calls of cuBLASLt (MatmulLayout::problems). Returns
  // whether cuBLASLt has an algorithm for each of these calls, both for the expected alignments of
  // the operands and for alignments of 16 bytes, the smallest that cuBLASLt supports for f8.
  bool hasAlgorithms(const MatmulLayout& layout) const;
  // Returns whether heddle's own kernel takes part in the measurement of the problem.
  static bool ownCompetes(const MatmulProblem& problem);
  // Prepares a matrix product for heddle's own kernels.
  std::shared_ptr<const PreparedMatmul> prepareOwn(const MatmulSpec& spec);

  int device_;
  bool has_float8_ = false;
  const codegen::KernelCompiler& compiler_;
  cublasLtHandle_t handle_ = nullptr;
  StridedCopy copy_;
  FallbackMatmulKernels own_;
  // Launches the algorithm if this is the first call for the question and the algorithm, so that
  // CUDA loads its kernel. Without this, the first launch in a run would load the kernel, and the
  // load would wait for running work of the GPU.
  void load(const std::string& question, const LtMatmul& matmul, const MatmulProblem& problem,
            const LtMatmul::Algorithm& algorithm, cudaStream_t stream);

  AlgorithmTimer timer_;
  std::mutex loaded_mutex_;
  std::set<std::string> loaded_;  // question + algorithm, for which load() was called
  std::unique_ptr<ChoiceCache> store_;
};

}  // namespace heddle::host
