#include "host/device/matmul_shape.h"

#include <algorithm>

#include "ir/base/check.h"

namespace heddle::host {
namespace {

// Returns the value at `position` from the right, or `absent` if there is none. The last value has
// position 0.
int64_t fromRight(const std::vector<int64_t>& values, size_t position, int64_t absent) {
  return position < values.size() ? values[values.size() - 1 - position] : absent;
}

// Returns the stride of the batch axis at `position` from the right, where the last axis has
// position 0. The stride is 0 if the operand lacks this batch axis or is broadcast along it. Throws
// UserError if the size of the operand along this axis is neither 1 nor `extent`, the size of the
// result along this axis.
int64_t batchStride(const TensorDesc& desc, size_t position, int64_t extent, const char* operand) {
  const int64_t size = fromRight(desc.sizes, position, 1);
  HEDDLE_USER_CHECK(size == extent || size == 1,
                    "matmul: batch axes of {} {} do not match those of the result: got {}, "
                    "expected {} or 1",
                    operand, str(desc.sizes), size, extent);
  return size == 1 && extent != 1 ? 0 : fromRight(desc.strides, position, 0);
}

// Returns the strides of rows and columns, without batch strides.
MatmulShape::Matrix matrixOf(const TensorDesc& desc) {
  return {fromRight(desc.strides, 1, 0), fromRight(desc.strides, 0, 0), {}};
}

void checkBias(const MatmulSpec& spec) {
  if (!spec.bias) return;
  const TensorDesc& bias = *spec.bias;
  HEDDLE_USER_CHECK(bias.rank() == 1 && bias.sizes[0] == fromRight(spec.c.sizes, 0, 0) &&
                        bias.dtype == spec.c.dtype,
                    "matmul: the bias must be {}[{}], got {}{}", name(spec.c.dtype),
                    fromRight(spec.c.sizes, 0, 0), name(bias.dtype), str(bias.sizes));
}

void checkDescs(const TensorDesc& a, const TensorDesc& b, const TensorDesc& c) {
  HEDDLE_USER_CHECK(a.rank() >= 2 && b.rank() >= 2 && c.rank() >= 2,
                    "matmul: operands need two axes or more, got {} x {} -> {}", str(a.sizes),
                    str(b.sizes), str(c.sizes));
  const bool of_float8 = isFloat8(a.dtype) && isFloat8(b.dtype) && isFloat(c.dtype) &&
                         !isFloat8(c.dtype) && c.dtype != DType::F64;
  HEDDLE_USER_CHECK((a.dtype == b.dtype && a.dtype == c.dtype) || of_float8,
                    "matmul: operands and result must have one dtype, or f8 operands must have a "
                    "result of f32, f16 or bf16; got {} x {} -> {}",
                    name(a.dtype), name(b.dtype), name(c.dtype));
  const bool fits = fromRight(a.sizes, 0, 0) == fromRight(b.sizes, 1, 0) &&
                    fromRight(c.sizes, 1, 0) == fromRight(a.sizes, 1, 0) &&
                    fromRight(c.sizes, 0, 0) == fromRight(b.sizes, 0, 0) && c.rank() >= a.rank() &&
                    c.rank() >= b.rank();
  HEDDLE_USER_CHECK(fits, "matmul: sizes do not fit: {} x {} -> {}", str(a.sizes), str(b.sizes),
                    str(c.sizes));
}

// Returns whether batch axis `axis` and an inner axis form one axis in memory.
bool continues(const MatmulShape::Matrix& matrix, size_t axis, int64_t inner_extent,
               int64_t inner_stride) {
  return matrix.batch_strides[axis] == inner_stride * inner_extent;
}

// Merges adjacent batch axes that form one axis in the memory of a, b and c.
void mergeBatches(MatmulShape& shape) {
  for (size_t i = shape.batch.size(); i-- > 1;) {
    const int64_t inner = shape.batch[i];
    const auto merges = [&](const MatmulShape::Matrix& x) {
      return continues(x, i - 1, inner, x.batch_strides[i]);
    };
    if (!merges(shape.a) || !merges(shape.b) || !merges(shape.c)) continue;
    shape.batch[i - 1] *= inner;
    shape.batch.erase(shape.batch.begin() + static_cast<std::ptrdiff_t>(i));
    for (MatmulShape::Matrix* x : {&shape.a, &shape.b, &shape.c}) {
      x->batch_strides[i - 1] = x->batch_strides[i];
      x->batch_strides.erase(x->batch_strides.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

// Returns whether the batch axis is inside of the rows, without gaps. The memory order of these two
// axes is then [m, batch], and they form one axis of rows.
bool isWithinRows(const MatmulShape::Matrix& matrix, size_t axis, int64_t extent) {
  return matrix.batch_strides[axis] > 0 && matrix.row_stride == matrix.batch_strides[axis] * extent;
}

// Merges batch axes into the rows of a and c, innermost first, and stops at the first axis that
// cannot be merged. After an axis is merged, the next batch axis may form one axis with the merged
// rows.
void mergeBatchesIntoRows(MatmulShape& shape) {
  while (!shape.batch.empty()) {
    const size_t last = shape.batch.size() - 1;
    const int64_t extent = shape.batch[last];
    if (shape.b.batch_strides[last] != 0) return;
    const bool outside = continues(shape.a, last, shape.m, shape.a.row_stride) &&
                         continues(shape.c, last, shape.m, shape.c.row_stride);
    const bool within = isWithinRows(shape.a, last, extent) && isWithinRows(shape.c, last, extent);
    if (!outside && !within) return;
    if (!outside) {
      shape.a.row_stride = shape.a.batch_strides[last];
      shape.c.row_stride = shape.c.batch_strides[last];
    }
    shape.m *= extent;
    shape.batch.pop_back();
    for (MatmulShape::Matrix* x : {&shape.a, &shape.b, &shape.c}) x->batch_strides.pop_back();
  }
}

}  // namespace

int64_t MatmulShape::batches() const {
  int64_t count = 1;
  for (int64_t extent : batch) count *= extent;
  return count;
}

MatrixLayout layoutOf(int64_t rows, int64_t columns, const MatmulShape::Matrix& matrix) {
  const auto fits = [](int64_t outer, int64_t outer_stride, int64_t inner, int64_t inner_stride) {
    return (inner_stride == 1 || inner <= 1) && (outer <= 1 || outer_stride >= inner);
  };
  // The stride of a single row (column) may have any value. `ld` is then the smallest value that
  // libraries accept.
  if (fits(rows, matrix.row_stride, columns, matrix.column_stride)) {
    return {true, false, std::max<int64_t>(rows <= 1 ? columns : matrix.row_stride, 1)};
  }
  if (fits(columns, matrix.column_stride, rows, matrix.row_stride)) {
    return {true, true, std::max<int64_t>(columns <= 1 ? rows : matrix.column_stride, 1)};
  }
  return {};
}

MatmulShape matmulShape(const MatmulSpec& spec) {
  const TensorDesc& a = spec.a;
  const TensorDesc& b = spec.b;
  const TensorDesc& c = spec.c;
  checkDescs(a, b, c);
  checkBias(spec);
  HEDDLE_USER_CHECK(spec.activation != Activation::GeluTanh || isFloat(c.dtype),
                    "matmul: gelu needs a float type, got {}", name(c.dtype));
  MatmulShape shape;
  shape.a_dtype = a.dtype;
  shape.b_dtype = b.dtype;
  shape.c_dtype = c.dtype;
  shape.has_bias = spec.bias.has_value();
  shape.bias_stride = shape.has_bias ? spec.bias->strides[0] : 0;
  shape.activation = spec.activation;
  shape.m = fromRight(a.sizes, 1, 0);
  shape.k = fromRight(a.sizes, 0, 0);
  shape.n = fromRight(b.sizes, 0, 0);
  shape.a = matrixOf(a);
  shape.b = matrixOf(b);
  shape.c = matrixOf(c);
  for (size_t position = c.rank(); position-- > 2;) {
    const int64_t extent = fromRight(c.sizes, position, 1);
    const int64_t in_a = batchStride(a, position, extent, "a");
    const int64_t in_b = batchStride(b, position, extent, "b");
    if (extent == 1) continue;
    shape.batch.push_back(extent);
    shape.a.batch_strides.push_back(in_a);
    shape.b.batch_strides.push_back(in_b);
    shape.c.batch_strides.push_back(fromRight(c.strides, position, 0));
  }
  mergeBatches(shape);
  mergeBatchesIntoRows(shape);
  return shape;
}

MatmulShape transposed(const MatmulShape& shape) {
  HEDDLE_CHECK(!shape.has_bias, "a matrix product with a bias cannot be transposed");
  MatmulShape result = shape;
  std::swap(result.m, result.n);
  std::swap(result.a, result.b);
  std::swap(result.a_dtype, result.b_dtype);
  for (MatmulShape::Matrix* x : {&result.a, &result.b, &result.c}) {
    std::swap(x->row_stride, x->column_stride);
  }
  return result;
}

void BatchOffsets::next() {
  for (size_t i = index_.size(); i-- > 0;) {
    a_ += shape_.a.batch_strides[i];
    b_ += shape_.b.batch_strides[i];
    c_ += shape_.c.batch_strides[i];
    if (++index_[i] < shape_.batch[i]) return;
    a_ -= shape_.a.batch_strides[i] * index_[i];
    b_ -= shape_.b.batch_strides[i] * index_[i];
    c_ -= shape_.c.batch_strides[i] * index_[i];
    index_[i] = 0;
  }
}

}  // namespace heddle::host
