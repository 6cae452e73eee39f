#include "host/device/cuda/matmul/cublaslt_matmul.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "host/device/cuda/kernel/cuda_check.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

cudaDataType_t cudaTypeOf(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return CUDA_R_32F;
    case DType::F64:
      return CUDA_R_64F;
    case DType::F16:
      return CUDA_R_16F;
    case DType::BF16:
      return CUDA_R_16BF;
    case DType::F8E4M3:
      return CUDA_R_8F_E4M3;
    case DType::F8E5M2:
      return CUDA_R_8F_E5M2;
    case DType::Bool:
    case DType::U8:
    case DType::I8:
    case DType::I32:
    case DType::I64:
      break;
  }
  HEDDLE_CHECK(false, "cuBLASLt was given a matrix of {}", name(dtype));
}

cublasComputeType_t computeTypeOf(const MatmulProblem& problem) {
  if (problem.c.dtype == DType::F64) return CUBLAS_COMPUTE_64F;
  if (problem.a.dtype == DType::F32 && problem.tf32) return CUBLAS_COMPUTE_32F_FAST_TF32;
  return CUBLAS_COMPUTE_32F;
}

cublasLtEpilogue_t epilogueOf(const MatmulProblem& problem) {
  const bool bias = problem.bias_alignment != 0;
  switch (problem.activation) {
    case Activation::None:
      return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    case Activation::Relu:
      return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case Activation::GeluTanh:  // cuBLASLt's gelu is the tanh form
      return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  }
  HEDDLE_CHECK(false, "activation {} is not in the enum", static_cast<int>(problem.activation));
}

// Describes a matrix to cuBLASLt. cuBLASLt expects column-major matrices. A row-major matrix [rows,
// columns] has the memory of a column-major matrix [columns, rows]. For such a matrix (`transposed`
// is false), the function therefore swaps rows and columns.
void initLayout(cublasLtMatrixLayoutOpaque_t& layout, const MatmulProblem::Side& side, int64_t rows,
                int64_t columns, int64_t batches) {
  if (!side.transposed) std::swap(rows, columns);
  HEDDLE_CUBLAS(cublasLtMatrixLayoutInit, &layout, cudaTypeOf(side.dtype),
                static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), side.ld);
  const auto count = static_cast<int32_t>(batches);
  HEDDLE_CUBLAS(cublasLtMatrixLayoutSetAttribute, &layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                &count, sizeof(count));
  HEDDLE_CUBLAS(cublasLtMatrixLayoutSetAttribute, &layout,
                CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &side.batch_stride,
                sizeof(side.batch_stride));
}

template <class T>
void setOperation(cublasLtMatmulDescOpaque_t& operation, cublasLtMatmulDescAttributes_t attribute,
                  T value) {
  HEDDLE_CUBLAS(cublasLtMatmulDescSetAttribute, &operation, attribute, &value, sizeof(value));
}

template <class T>
void prefer(cublasLtMatmulPreferenceOpaque_t& preference,
            cublasLtMatmulPreferenceAttributes_t attribute, T value) {
  HEDDLE_CUBLAS(cublasLtMatmulPreferenceSetAttribute, &preference, attribute, &value,
                sizeof(value));
}

// Removes const, because the functions of cuBLASLt take non-const pointers to descriptors although
// they do not change them.
template <class T>
T* mutablePointer(const T& descriptor) {
  return const_cast<T*>(&descriptor);
}

int32_t smCount() {
  int device = 0, count = 0;
  HEDDLE_CUDA(cudaGetDevice, &device);
  HEDDLE_CUDA(cudaDeviceGetAttribute, &count, cudaDevAttrMultiProcessorCount, device);
  return count;
}

// Returns whether the relu of the algorithm turns NaN into 0. Algorithm number 20 does so. We
// tested all algorithms that cuBLASLt 13.0 proposes on an H200 for small and large matrix products
// in f32 and bf16, and found no other.
bool losesNan(const cublasLtMatmulAlgo_t& algorithm) {
  constexpr int32_t kLosesNan = 20;
  int32_t number = 0;
  size_t written = 0;
  HEDDLE_CUBLAS(cublasLtMatmulAlgoConfigGetAttribute, &algorithm, CUBLASLT_ALGO_CONFIG_ID, &number,
                sizeof(number), &written);
  return number == kLosesNan;
}

constexpr float kOne32 = 1, kZero32 = 0;
constexpr double kOne64 = 1, kZero64 = 0;

}  // namespace

// Operand A of cuBLASLt is b, and operand B is a, because the class computes c^T = b^T a^T.
LtMatmul::LtMatmul(cublasLtHandle_t handle, const MatmulProblem& problem)
    : handle_(handle), problem_(problem), f64_(problem.c.dtype == DType::F64) {
  HEDDLE_CUBLAS(cublasLtMatmulDescInit, &operation_, computeTypeOf(problem),
                f64_ ? CUDA_R_64F : CUDA_R_32F);
  setOperation(operation_, CUBLASLT_MATMUL_DESC_TRANSA,
               problem.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  setOperation(operation_, CUBLASLT_MATMUL_DESC_TRANSB,
               problem.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  setEpilogue(problem);
  if (problem.spare_sms > 0) {
    setOperation(operation_, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET,
                 std::max(smCount() - problem.spare_sms, 1));
  }
  initLayout(first_, problem.b, problem.k, problem.n, problem.batches);
  initLayout(second_, problem.a, problem.m, problem.k, problem.batches);
  initLayout(result_, problem.c, problem.m, problem.n, problem.batches);
}

void LtMatmul::setEpilogue(const MatmulProblem& problem) {
  setOperation(operation_, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogueOf(problem));
  if (problem.bias_alignment == 0) return;
  setOperation(operation_, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
               static_cast<int32_t>(cudaTypeOf(problem.c.dtype)));
  // The heuristic uses only the alignment of this address, so any address with the right alignment
  // is sufficient. The number bias_alignment itself is such an address.
  setOperation(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
               reinterpret_cast<const void*>(static_cast<uintptr_t>(problem.bias_alignment)));
}

std::vector<LtMatmul::Algorithm> LtMatmul::candidates(int most, size_t workspace_bytes) const {
  cublasLtMatmulPreferenceOpaque_t preference{};
  HEDDLE_CUBLAS(cublasLtMatmulPreferenceInit, &preference);
  prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
         static_cast<uint64_t>(workspace_bytes));
  const auto aligned = [&](cublasLtMatmulPreferenceAttributes_t attribute, int64_t bytes) {
    prefer(preference, attribute, static_cast<uint32_t>(bytes));
  };
  aligned(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, problem_.b.alignment);
  aligned(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, problem_.a.alignment);
  aligned(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, problem_.c.alignment);
  aligned(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, problem_.c.alignment);
  // For relu, the function requests more proposals, because losesNan() may reject the first ones.
  const int asked = problem_.activation == Activation::Relu ? std::max(most, 32) : most;
  std::vector<cublasLtMatmulHeuristicResult_t> found(asked);
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_, mutablePointer(operation_), mutablePointer(first_), mutablePointer(second_),
      mutablePointer(result_), mutablePointer(result_), &preference, asked, found.data(), &count);
  std::vector<Algorithm> algorithms;
  if (status != CUBLAS_STATUS_SUCCESS) return algorithms;
  for (int i = 0; i < count && static_cast<int>(algorithms.size()) < most; ++i) {
    const cublasLtMatmulHeuristicResult_t& one = found[i];
    if (one.state != CUBLAS_STATUS_SUCCESS) continue;
    if (problem_.activation == Activation::Relu && losesNan(one.algo)) continue;
    algorithms.push_back({one.algo, one.workspaceSize});
  }
  return algorithms;
}

std::string LtMatmul::text(const Algorithm& algorithm) {
  std::string out;
  for (const uint64_t word : algorithm.algorithm.data) out += fmt::format("{:016x}", word);
  return out;
}

std::optional<LtMatmul::Algorithm> LtMatmul::fromText(const std::string& text,
                                                      size_t workspace_bytes) const {
  Algorithm algorithm;
  constexpr size_t kWords = std::size(decltype(algorithm.algorithm.data){});
  constexpr size_t kDigits = 16;
  if (text.size() != kWords * kDigits ||
      text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return std::nullopt;
  }
  for (size_t i = 0; i < kWords; ++i) {
    algorithm.algorithm.data[i] = std::stoull(text.substr(i * kDigits, kDigits), nullptr, 16);
  }
  cublasLtMatmulHeuristicResult_t checked{};
  const cublasStatus_t status = cublasLtMatmulAlgoCheck(
      handle_, mutablePointer(operation_), mutablePointer(first_), mutablePointer(second_),
      mutablePointer(result_), mutablePointer(result_), &algorithm.algorithm, &checked);
  if (status != CUBLAS_STATUS_SUCCESS || checked.workspaceSize > workspace_bytes) {
    return std::nullopt;
  }
  algorithm.workspace_bytes = checked.workspaceSize;
  return algorithm;
}

cublasStatus_t LtMatmul::tryRun(const Algorithm& algorithm, const MatmulOperands& operands,
                                cudaStream_t stream) const {
  const void* one = f64_ ? static_cast<const void*>(&kOne64) : &kOne32;
  const void* zero = f64_ ? static_cast<const void*>(&kZero64) : &kZero32;
  const auto multiply = [&](const cublasLtMatmulDescOpaque_t& operation) {
    return cublasLtMatmul(handle_, mutablePointer(operation), one, operands.b,
                          mutablePointer(first_), operands.a, mutablePointer(second_), zero,
                          operands.c, mutablePointer(result_), operands.c, mutablePointer(result_),
                          &algorithm.algorithm, operands.workspace, algorithm.workspace_bytes,
                          stream);
  };
  if (problem_.bias_alignment == 0) return multiply(operation_);
  // The address of the bias is part of the descriptor. The function sets it in a copy of the
  // descriptor, because other threads use the original.
  cublasLtMatmulDescOpaque_t own = operation_;
  const cublasStatus_t status = cublasLtMatmulDescSetAttribute(
      &own, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &operands.bias, sizeof(operands.bias));
  return status == CUBLAS_STATUS_SUCCESS ? multiply(own) : status;
}

void LtMatmul::run(const Algorithm& algorithm, const MatmulOperands& operands,
                   cudaStream_t stream) const {
  checkCublas(tryRun(algorithm, operands, stream), "cublasLtMatmul");
}

}  // namespace heddle::host
