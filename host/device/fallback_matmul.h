#pragma once

#include <cstdint>
#include <optional>

#include "host/device/matmul_shape.h"

namespace heddle::host {

// Splits a matrix product on CUDA into calls of cuBLASLt and launches of heddle's own kernels
// (codegen/runtime/cuda_product.h). The code here does not use CUDA, so that tests can run it
// without a GPU. heddle's own kernels compute:
// - matrix products that cuBLASLt does not support: integers (which wrap), bools, and some f8;
// - gelu of f64, because the gelu of cuBLASLt has f32 constants;
// - bias and activation of an f8 matrix product with an f32 result, because cuBLASLt has no f32
//   bias for f8.

enum class ProductKernel : uint8_t { Integers, Singles, Doubles, FinishSingles, FinishDoubles };
inline constexpr const char* kProductEntries[] = {"hdpIntegers", "hdpSingles", "hdpDoubles",
                                                  "hdpFinishSingles", "hdpFinishDoubles"};
inline constexpr int kProductThreads = 256;  // of every block

// The argument struct of the kernels. It equals hdp::Args member by member.
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
  int64_t axes = 0;
  int64_t sizes[kMostBatchAxes] = {};       // of the batch axes, outermost first
  int64_t strides[3][kMostBatchAxes] = {};  // of a, b and c, like the arrays below
  int64_t row_strides[3] = {};
  int64_t column_strides[3] = {};
  int64_t bias_stride = 0;
  int64_t types[3] = {};
  int64_t activation = 0;
};

struct ProductLaunch {
  ProductKernel kernel = ProductKernel::Integers;
  int64_t blocks = 0;
  ProductArgs args;  // without addresses
};

// Returns the part of the matrix product that cuBLASLt computes: the full matrix product, or the
// matrix product without the bias or the activation. Returns nullopt if cuBLASLt computes no part.
// cuBLASLt computes an f8 matrix product if all of these conditions hold:
// - the GPU has f8 tensor cores (`has_float8`: sm_89 and later),
// - a or b is e4m3, and c is wider than f8,
// - k and the dense extent of c are multiples of 16, and k is positive.
std::optional<MatmulSpec> libraryPart(const MatmulSpec& spec, bool has_float8);

// Returns the launch that computes the full matrix product. Batch axes that form one axis in memory
// are merged. Throws UserError if more than ProductArgs::kMostBatchAxes axes remain.
ProductLaunch fallbackMatmul(const MatmulSpec& spec);
// Returns the launch that applies the bias and activation of `spec` that `part` does not contain.
// The kernel changes c in place. c must be f32 or f64, so that the sums are not rounded earlier.
ProductLaunch productFinish(const MatmulSpec& spec, const MatmulSpec& part);

}  // namespace heddle::host
