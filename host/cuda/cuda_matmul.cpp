#include "host/cuda/cuda_matmul.h"

#include <algorithm>
#include <utility>

#include "host/cuda/cuda_check.h"
#include "host/cuda/scratch.h"
#include "ir/error.h"

namespace heddle::host {
namespace {

constexpr size_t kWorkspaceBytes = size_t{32} << 20;
// Batches of one call: grids may put the batch on an axis of that many blocks.
constexpr int64_t kMostBatches = 65535;

struct Types {
  cudaDataType_t data;
  cublasComputeType_t compute;
  cudaDataType_t scale;
};

Types typesOf(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return {CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case DType::F64:
      return {CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F};
    case DType::BF16:
      return {CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case DType::I64:
    case DType::Bool:
      break;
  }
  userError("matmul on a CUDA device takes f32, f64 and bf16, got {}", name(dtype));
}

// The largest power of two up to 256 that divides the address: algorithms need 16 as a rule.
int64_t alignmentOf(const void* address) {
  const auto value = reinterpret_cast<uintptr_t>(address) | 256U;
  return static_cast<int64_t>(value & (~value + 1));
}

const char* offsetBy(const void* data, int64_t elements, DType dtype) {
  return static_cast<const char*>(data) + elements * sizeOf(dtype);
}

// c with dense columns is the row-major result of the transposed product.
MatmulShape swapped(const MatmulShape& shape) {
  MatmulShape result = shape;
  std::swap(result.m, result.n);
  std::swap(result.a, result.b);
  for (MatmulShape::Matrix* x : {&result.a, &result.b, &result.c}) {
    std::swap(x->row_stride, x->column_stride);
  }
  return result;
}

// The sizes [batch..., rows, columns] of an operand, without the batch axes over which it is
// stretched, and its strides; `packed` becomes the same operand dense.
struct Packing {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  std::vector<int64_t> dense;
  MatmulShape::Matrix packed;
  int64_t elements = 1;

  Packing(const MatmulShape& shape, const MatmulShape::Matrix& matrix, int64_t rows,
          int64_t columns) {
    for (size_t i = 0; i < shape.batch.size(); ++i) {
      if (matrix.batch_strides[i] == 0) continue;
      sizes.push_back(shape.batch[i]);
      strides.push_back(matrix.batch_strides[i]);
    }
    sizes.insert(sizes.end(), {rows, columns});
    strides.insert(strides.end(), {matrix.row_stride, matrix.column_stride});
    dense.resize(sizes.size());
    for (size_t i = sizes.size(); i-- > 0;) {
      dense[i] = elements;
      elements *= sizes[i];
    }
    packed.row_stride = columns;
    packed.column_stride = 1;
    size_t next = 0;
    for (int64_t stride : matrix.batch_strides) {
      packed.batch_strides.push_back(stride == 0 ? 0 : dense[next++]);
    }
  }
};

// In column-major terms a row-major matrix [rows, columns] is its own transpose.
cublasLtMatrixLayout_t makeLayout(cudaDataType_t type, int64_t rows, int64_t columns,
                                  bool transposed, int64_t ld, int64_t batches,
                                  int64_t batch_stride) {
  if (!transposed) std::swap(rows, columns);
  cublasLtMatrixLayout_t layout = nullptr;
  HEDDLE_CUBLAS(cublasLtMatrixLayoutCreate, &layout, type, static_cast<uint64_t>(rows),
                static_cast<uint64_t>(columns), ld);
  const auto count = static_cast<int32_t>(batches);
  HEDDLE_CUBLAS(cublasLtMatrixLayoutSetAttribute, layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                &count, sizeof(count));
  HEDDLE_CUBLAS(cublasLtMatrixLayoutSetAttribute, layout,
                CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batch_stride, sizeof(batch_stride));
  return layout;
}

enum : size_t {
  kDType,
  kM,
  kN,
  kK,
  kBatches,
  kTransposedA,
  kTransposedB,
  kLdA,
  kLdB,
  kLdC,
  kBatchA,
  kBatchB,
  kBatchC,
  kAlignA,
  kAlignB,
  kAlignC
};

}  // namespace

// The product as cuBLASLt sees it, c^T = b^T a^T in column-major terms: `first` is b.
struct CudaMatmul::Plan {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t first = nullptr;
  cublasLtMatrixLayout_t second = nullptr;
  cublasLtMatrixLayout_t result = nullptr;
  cublasLtMatmulHeuristicResult_t chosen{};

  ~Plan() {
    cublasLtMatmulDescDestroy(operation);
    for (cublasLtMatrixLayout_t layout : {first, second, result}) {
      if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
    }
  }
};

CudaMatmul::CudaMatmul() { HEDDLE_CUBLAS(cublasLtCreate, &handle_); }
CudaMatmul::~CudaMatmul() {
  plans_.clear();
  cublasLtDestroy(handle_);
}

std::unique_ptr<CudaMatmul::Plan> CudaMatmul::makePlan(const Key& key) {
  const Types types = typesOf(static_cast<DType>(key[kDType]));
  auto plan = std::make_unique<Plan>();
  HEDDLE_CUBLAS(cublasLtMatmulDescCreate, &plan->operation, types.compute, types.scale);
  const cublasOperation_t first = key[kTransposedB] != 0 ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = key[kTransposedA] != 0 ? CUBLAS_OP_T : CUBLAS_OP_N;
  HEDDLE_CUBLAS(cublasLtMatmulDescSetAttribute, plan->operation, CUBLASLT_MATMUL_DESC_TRANSA,
                &first, sizeof(first));
  HEDDLE_CUBLAS(cublasLtMatmulDescSetAttribute, plan->operation, CUBLASLT_MATMUL_DESC_TRANSB,
                &second, sizeof(second));
  const int64_t m = key[kM], n = key[kN], k = key[kK], batches = key[kBatches];
  plan->first =
      makeLayout(types.data, k, n, key[kTransposedB] != 0, key[kLdB], batches, key[kBatchB]);
  plan->second =
      makeLayout(types.data, m, k, key[kTransposedA] != 0, key[kLdA], batches, key[kBatchA]);
  plan->result = makeLayout(types.data, m, n, false, key[kLdC], batches, key[kBatchC]);

  cublasLtMatmulPreference_t preference = nullptr;
  HEDDLE_CUBLAS(cublasLtMatmulPreferenceCreate, &preference);
  const std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>,
                        cublasStatus_t (*)(cublasLtMatmulPreference_t)>
      keeper(preference, cublasLtMatmulPreferenceDestroy);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    HEDDLE_CUBLAS(cublasLtMatmulPreferenceSetAttribute, preference, attribute, &value,
                  sizeof(value));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(key[kAlignB]));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(key[kAlignA]));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(key[kAlignC]));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(key[kAlignC]));
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_, plan->operation, plan->first, plan->second, plan->result, plan->result, preference,
      1, &plan->chosen, &found);
  HEDDLE_USER_CHECK(
      status == CUBLAS_STATUS_SUCCESS && found > 0,
      "cublasLtMatmulAlgoGetHeuristic: {}: no algorithm for {} [{}, {}] x [{}, {}] in "
      "{} batches",
      cublasLtGetStatusString(status), name(static_cast<DType>(key[kDType])), m, k, k, n, batches);
  return plan;
}

const CudaMatmul::Plan& CudaMatmul::planFor(const Key& key) {
  std::lock_guard lock(mutex_);
  std::unique_ptr<Plan>& plan = plans_[key];
  if (!plan) plan = makePlan(key);
  return *plan;
}

// All layouts fit and c is row-major. One call a group of innermost batches.
void CudaMatmul::runDense(const MatmulShape& shape, const void* a, const void* b, void* c,
                          cudaStream_t stream) {
  const MatrixLayout in_a = layoutOf(shape.m, shape.k, shape.a);
  const MatrixLayout in_b = layoutOf(shape.k, shape.n, shape.b);
  const MatrixLayout in_c = layoutOf(shape.m, shape.n, shape.c);
  MatmulShape outer = shape;
  int64_t inner = 1, batch_a = 0, batch_b = 0, batch_c = 0;
  if (!shape.batch.empty()) {
    inner = shape.batch.back();
    batch_a = shape.a.batch_strides.back();
    batch_b = shape.b.batch_strides.back();
    batch_c = shape.c.batch_strides.back();
    outer.batch.pop_back();
  }
  BatchOffsets offsets(outer);
  const int64_t rounds = outer.batches();
  const double one_f64 = 1, zero_f64 = 0;
  const float one_f32 = 1, zero_f32 = 0;
  const bool wide = shape.dtype == DType::F64;
  for (int64_t round = 0; round < rounds; ++round, offsets.next()) {
    for (int64_t begin = 0; begin < inner; begin += kMostBatches) {
      const int64_t count = std::min(kMostBatches, inner - begin);
      const void* at_a = offsetBy(a, offsets.a() + begin * batch_a, shape.dtype);
      const void* at_b = offsetBy(b, offsets.b() + begin * batch_b, shape.dtype);
      void* at_c = const_cast<char*>(offsetBy(c, offsets.c() + begin * batch_c, shape.dtype));
      const Plan& plan = planFor({static_cast<int64_t>(shape.dtype), shape.m, shape.n, shape.k,
                                  count, in_a.transposed ? 1 : 0, in_b.transposed ? 1 : 0, in_a.ld,
                                  in_b.ld, in_c.ld, batch_a, batch_b, batch_c, alignmentOf(at_a),
                                  alignmentOf(at_b), alignmentOf(at_c)});
      const Scratch workspace(static_cast<int64_t>(plan.chosen.workspaceSize), stream);
      HEDDLE_CUBLAS(cublasLtMatmul, handle_, plan.operation,
                    wide ? static_cast<const void*>(&one_f64) : &one_f32, at_b, plan.first, at_a,
                    plan.second, wide ? static_cast<const void*>(&zero_f64) : &zero_f32, at_c,
                    plan.result, at_c, plan.result, &plan.chosen.algo, workspace.get(),
                    plan.chosen.workspaceSize, stream);
    }
  }
}

void CudaMatmul::run(const MatmulShape& shape, const void* a, const void* b, void* c,
                     const codegen::KernelCompiler& compiler, cudaStream_t stream) {
  typesOf(shape.dtype);
  if (shape.m == 0 || shape.n == 0 || shape.batches() == 0) return;
  const MatrixLayout in_c = layoutOf(shape.m, shape.n, shape.c);
  if (in_c.fits && in_c.transposed) return run(swapped(shape), b, a, c, compiler, stream);

  const int64_t bytes = sizeOf(shape.dtype);
  MatmulShape dense = shape;
  const auto pack = [&](const void* data, MatmulShape::Matrix& matrix, int64_t rows,
                        int64_t columns) {
    if (shape.k == 0 || layoutOf(rows, columns, matrix).fits) return Scratch();
    const Packing packing(shape, matrix, rows, columns);
    Scratch scratch(packing.elements * bytes, stream);
    copy_.run(compiler, scratch.get(), packing.dense, data, packing.strides, packing.sizes, bytes,
              stream);
    matrix = packing.packed;
    return scratch;
  };
  const Scratch packed_a = pack(a, dense.a, shape.m, shape.k);
  const Scratch packed_b = pack(b, dense.b, shape.k, shape.n);
  const void* from_a = packed_a.get() != nullptr ? packed_a.get() : a;
  const void* from_b = packed_b.get() != nullptr ? packed_b.get() : b;
  // An empty sum is 0 wherever c lies, so it too is made dense first.
  if (in_c.fits && shape.k != 0) return runDense(dense, from_a, from_b, c, stream);
  const Packing result(shape, shape.c, shape.m, shape.n);
  const Scratch packed_c(result.elements * bytes, stream);
  dense.c = result.packed;
  if (shape.k == 0) {
    HEDDLE_CUDA(cudaMemsetAsync, packed_c.get(), 0, static_cast<size_t>(result.elements * bytes),
                stream);
  } else {
    runDense(dense, from_a, from_b, packed_c.get(), stream);
  }
  copy_.run(compiler, c, result.strides, packed_c.get(), result.dense, result.sizes, bytes, stream);
}

}  // namespace heddle::host
