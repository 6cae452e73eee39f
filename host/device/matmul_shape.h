#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>

#include "host/device/device.h"

namespace heddle::host {

// A batched matrix product in the form that libraries need. For each batch, c[m, n] =
// activation(a[m, k] x b[k, n] + bias[n]). Strides are in elements.
struct MatmulShape {
  using List = boost::container::small_vector<int64_t, 4>;
  struct Matrix {
    int64_t row_stride = 0;
    int64_t column_stride = 0;
    List batch_strides;  // 0 for an axis along which the operand is broadcast
  };

  DType a_dtype = DType::F32;
  DType b_dtype = DType::F32;
  DType c_dtype = DType::F32;  // also the dtype of the bias
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  // Sizes of the batch axes, in the order of the axes of c. matmulShape() leaves out axes of extent
  // 1, and merges adjacent axes that form one axis in the memory of a, b and c.
  List batch;
  Matrix a;
  Matrix b;
  Matrix c;
  bool has_bias = false;
  int64_t bias_stride = 0;
  Activation activation = Activation::None;

  // Returns the number of batches: the product of `batch`.
  int64_t batches() const;
};

// The layout of a matrix in the form of BLAS. If `fits` is true, the rows or the columns are dense,
// that is, their elements have stride 1. If `fits` is false, the other members have no meaning.
struct MatrixLayout {
  bool fits = false;        // false: libraries cannot read the matrix in place
  bool transposed = false;  // true: the columns are dense; false: the rows are dense
  int64_t ld = 1;           // elements from the start of a dense row (column) to the next one
};
// Returns the layout of a matrix. If rows and columns are both dense, `transposed` is false.
MatrixLayout layoutOf(int64_t rows, int64_t columns, const MatmulShape::Matrix& matrix);

// Checks the descriptors and returns the shape. Throws UserError if ranks, sizes or dtypes do not
// fit, or if the activation is gelu and c has no float type. The message names the wrong sizes or
// dtypes.
//
// The innermost batch axis is merged into the rows of a and c if both conditions are true:
// - b lacks the batch axis or is broadcast along it.
// - The batch axis and the rows form one axis in the memory of a and of c.
// In this axis, the batch axis may be the outer or the inner one, but must be the same one in a and
// c. The next batch axis is then treated in the same way. Thus a dense [batch, m, k] x [k, n]
// becomes one unbatched matrix product.
MatmulShape matmulShape(const MatmulSpec& spec);

// Returns the transposed matrix product c^T = b^T a^T. If c has dense columns, the rows of c^T are
// dense. `shape` must not have a bias, because the bias of the transposed matrix product would vary
// along rows.
MatmulShape transposed(const MatmulShape& shape);

// Iterates over the batches in order. a(), b() and c() return the offset of the current batch in
// each operand, in elements. next() advances to the next batch. `shape` must outlive the object.
class BatchOffsets {
 public:
  explicit BatchOffsets(const MatmulShape& shape) : shape_(shape), index_(shape.batch.size(), 0) {}
  int64_t a() const { return a_; }
  int64_t b() const { return b_; }
  int64_t c() const { return c_; }
  void next();

 private:
  const MatmulShape& shape_;
  MatmulShape::List index_;
  int64_t a_ = 0;
  int64_t b_ = 0;
  int64_t c_ = 0;
};

}  // namespace heddle::host
