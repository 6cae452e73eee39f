#include "host/device/fallback_matmul.h"

#include <algorithm>

#include "ir/base/ceil_div.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

constexpr int64_t kProductTile = 64;           // rows and columns of c per block
constexpr int64_t kMostProductBlocks = 65536;  // limit of a grid; blocks loop over further work
// For f8, cuBLASLt requires that k is a multiple of this number, and also the extent of its result
// along the axis of stride 1. The result is c, or a packed copy of c with dense rows
// (host/device/cuda/matmul/matmul_layout.h). The other extent may have any value.
constexpr int64_t kFloat8Multiple = 16;

// Returns the arguments for a shape, without addresses.
ProductArgs productArgs(const MatmulShape& shape) {
  HEDDLE_USER_CHECK(shape.batch.size() <= ProductArgs::kMostBatchAxes,
                    "matmul of {}: {} batch axes are separate in memory; at most {} are supported",
                    name(shape.a_dtype), shape.batch.size(), ProductArgs::kMostBatchAxes);
  ProductArgs args;
  args.m = shape.m;
  args.n = shape.n;
  args.k = shape.k;
  args.batches = shape.batches();
  args.axes = static_cast<int64_t>(shape.batch.size());
  std::copy(shape.batch.begin(), shape.batch.end(), args.sizes);
  const MatmulShape::Matrix* matrices[] = {&shape.a, &shape.b, &shape.c};
  const DType dtypes[] = {shape.a_dtype, shape.b_dtype, shape.c_dtype};
  for (size_t i = 0; i < std::size(matrices); ++i) {
    const MatmulShape::Matrix& matrix = *matrices[i];
    std::copy(matrix.batch_strides.begin(), matrix.batch_strides.end(), args.strides[i]);
    args.row_strides[i] = matrix.row_stride;
    args.column_strides[i] = matrix.column_stride;
    args.types[i] = static_cast<int64_t>(dtypes[i]);
  }
  args.bias_stride = shape.bias_stride;
  args.activation = static_cast<int64_t>(shape.activation);
  return args;
}

// Returns whether cuBLASLt supports this f8 matrix product on a GPU with f8 tensor cores.
bool supportsFloat8(const MatmulSpec& spec) {
  const bool types = spec.a.dtype == DType::F8E4M3 || spec.b.dtype == DType::F8E4M3;
  if (!types || isFloat8(spec.c.dtype)) return false;
  const MatmulShape shape = matmulShape(spec);
  // layoutMatmul() computes the transposed matrix product if only the columns of c are dense
  // and there is no bias.
  const MatrixLayout c = layoutOf(shape.m, shape.n, shape.c);
  const int64_t columns = c.fits && c.transposed && !shape.has_bias ? shape.m : shape.n;
  return shape.k > 0 && shape.k % kFloat8Multiple == 0 && columns % kFloat8Multiple == 0;
}

}  // namespace

std::optional<MatmulSpec> libraryPart(const MatmulSpec& spec, bool has_float8) {
  const DType dtype = spec.a.dtype;
  if (!isFloat(dtype)) return std::nullopt;
  MatmulSpec part = spec;
  if (isFloat8(dtype)) {
    if (spec.c.dtype == DType::F32) {
      part.bias.reset();
      part.activation = Activation::None;
    }
    return has_float8 && supportsFloat8(part) ? std::optional(part) : std::nullopt;
  }
  if (dtype == DType::F64 && spec.activation == Activation::GeluTanh) {
    part.activation = Activation::None;
  }
  return part;
}

ProductLaunch fallbackMatmul(const MatmulSpec& spec) {
  const MatmulShape shape = matmulShape(spec);
  ProductLaunch launch;
  launch.kernel = !isFloat(spec.a.dtype)       ? ProductKernel::Integers
                  : spec.a.dtype == DType::F64 ? ProductKernel::Doubles
                                               : ProductKernel::Singles;
  launch.args = productArgs(shape);
  launch.blocks =
      std::min(kMostProductBlocks, ceilDiv(shape.m, kProductTile) * ceilDiv(shape.n, kProductTile) *
                                       launch.args.batches);
  return launch;
}

ProductLaunch productFinish(const MatmulSpec& spec, const MatmulSpec& part) {
  const DType dtype = spec.c.dtype;
  HEDDLE_CHECK(dtype == DType::F32 || dtype == DType::F64,
               "a matrix product of {} would be rounded before the bias and activation",
               name(dtype));
  MatmulSpec rest = spec;
  if (part.bias) rest.bias.reset();
  const MatmulShape shape = matmulShape(rest);
  ProductLaunch launch;
  launch.kernel = dtype == DType::F64 ? ProductKernel::FinishDoubles : ProductKernel::FinishSingles;
  launch.args = productArgs(shape);
  launch.blocks = std::min(kMostProductBlocks,
                           ceilDiv(shape.m * shape.n * launch.args.batches, kProductThreads));
  return launch;
}

}  // namespace heddle::host
