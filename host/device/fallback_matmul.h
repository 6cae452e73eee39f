#pragma once

#include <cstdint>
#include <optional>

#include "host/device/matmul_shape.h"

namespace heddle::host {

// Splits a matrix product on CUDA into a part for cuBLASLt and a launch of one of heddle's own
// kernels (codegen/runtime/cuda_product.h). One of the two may be missing. The functions in this
// file do not use CUDA, so tests can run them without a GPU. heddle's own kernels compute:
// - matrix products that cuBLASLt does not support: those of integers, of bools, and some of f8
//   (libraryPart());
// - other matrix products of f8, if cuBLASLt has no algorithm for them, or if the address of an
//   operand does not have 16-byte alignment (CudaMatmul in host/device/cuda/matmul/cuda_matmul.h);
// - gelu of f64, because the gelu of cuBLASLt has f32 constants;
// - bias and activation of an f8 matrix product with an f32 result, because cuBLASLt has no f32
//   bias for f8.

// One of heddle's own kernels. Integers, Singles and Doubles compute a full matrix product. They
// accumulate in i64, f32 and f64, respectively. FinishSingles and FinishDoubles apply the bias and
// the activation to sums of f32 and f64.
enum class ProductKernel : uint8_t { Integers, Singles, Doubles, FinishSingles, FinishDoubles };
inline constexpr const char* kProductEntries[] = {"hdpIntegers", "hdpSingles", "hdpDoubles",
                                                  "hdpFinishSingles", "hdpFinishDoubles"};
inline constexpr int kProductThreads = 256;  // threads per block, for all of these kernels

// The argument struct of the kernels. Its members equal those of hdp::Args in the kernels' source.
// The matrix product is c[m, n] = activation(a[m, k] x b[k, n] + bias[n]) for each batch. Strides
// are in elements.
struct ProductArgs {
  static constexpr size_t kMostBatchAxes = 8;

  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;
  void* c = nullptr;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t batches = 1;
  int64_t axes = 0;                         // number of batch axes
  int64_t sizes[kMostBatchAxes] = {};       // sizes of the batch axes; see MatmulShape::batch
  int64_t strides[3][kMostBatchAxes] = {};  // batch strides of a, b and c
  int64_t row_strides[3] = {};              // row strides of a, b and c
  int64_t column_strides[3] = {};           // column strides of a, b and c
  int64_t bias_stride = 0;
  int64_t types[3] = {};   // DTypes of a, b and c
  int64_t activation = 0;  // an Activation
};

struct ProductLaunch {
  ProductKernel kernel = ProductKernel::Integers;
  int64_t blocks = 0;  // number of blocks of the grid
  ProductArgs args;    // without addresses; a run copies the struct and sets them
};

// Returns the part of a matrix product that cuBLASLt computes. The part is the full matrix product,
// or it lacks the bias, the activation or both. Returns nullopt if cuBLASLt computes no part, as
// for all integers and bools. For f8, cuBLASLt computes a part if all of these conditions are true:
// - The GPU has f8 tensor cores (`has_float8`: sm_89 and later).
// - The dtype of a or b is e4m3, and c is wider than f8.
// - k is a positive multiple of 16.
// - n is a multiple of 16. Exception: if only the columns of c are dense and the part has no bias,
//   cuBLASLt computes c^T, and m must be a multiple of 16 instead. m is MatmulShape::m, which may
//   contain batch axes.
std::optional<MatmulSpec> libraryPart(const MatmulSpec& spec, bool has_float8);

// Returns the launch that computes the full matrix product. Batch axes that form one axis in memory
// are merged. Throws UserError if more than ProductArgs::kMostBatchAxes batch axes remain.
ProductLaunch fallbackMatmul(const MatmulSpec& spec);
// Returns the launch that completes the result of `part`, which libraryPart() returned for `spec`.
// The kernel applies the bias and the activation that `part` lacks, in place. c must be f32 or f64,
// because in a narrower type the sums would be rounded before the bias is added.
ProductLaunch productFinish(const MatmulSpec& spec, const MatmulSpec& part);

}  // namespace heddle::host
