#pragma once

#include <cstdint>
#include <optional>

#include "host/device/matmul_shape.h"

namespace heddle::host {

// How a matrix product on CUDA becomes calls of cuBLASLt and launches of the kernels of
// codegen/runtime/cuda_product.h. Knows no CUDA, so that it is tested without a GPU. heddle's own
// kernels multiply what cuBLASLt does not (integers, which wrap, bools, and f8 where it cannot),
// and apply what it is not exact enough for, its gelu of f64 having constants of f32, or what it
// has not: a bias of f32 behind f8.

enum class ProductKernel : uint8_t { Integers, Singles, Doubles, FinishSingles, FinishDoubles };
inline constexpr const char* kProductEntries[] = {"hdpIntegers", "hdpSingles", "hdpDoubles",
                                                  "hdpFinishSingles", "hdpFinishDoubles"};
inline constexpr int kProductThreads = 256;  // of every block

// hdp::Args of the kernels, member by member.
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
  int64_t sizes[kMostBatchAxes] = {};
  int64_t strides[3][kMostBatchAxes] = {};
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

// The part of the product that cuBLASLt computes: the whole, the same with less behind the sums, or
// nothing. Of f8 (`has_float8`: from sm_89 on) it takes all but e5m2 by e5m2, to a wider type, with
// k and the columns of the result that lie dense in multiples of 16.
std::optional<MatmulSpec> libraryPart(const MatmulSpec& spec, bool has_float8);

// The whole product. UserError beyond ProductArgs::kMostBatchAxes batch axes that are not one in
// memory.
ProductLaunch fallbackMatmul(const MatmulSpec& spec);
// What `part` leaves to be done where the product stands.
ProductLaunch productFinish(const MatmulSpec& spec, const MatmulSpec& part);

}  // namespace heddle::host
