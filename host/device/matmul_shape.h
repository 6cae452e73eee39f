#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>

#include "host/device/device.h"

namespace heddle::host {

// One batched matrix product as libraries want it: c[m, n] = activation(a[m, k] x b[k, n] +
// bias[n]) for each batch. Strides are in elements.
struct MatmulShape {
  using List = boost::container::small_vector<int64_t, 4>;
  struct Matrix {
    int64_t row_stride = 0;
    int64_t column_stride = 0;
    List batch_strides;  // 0 where this operand has no such batch axis
  };

  DType a_dtype = DType::F32;
  DType b_dtype = DType::F32;
  DType c_dtype = DType::F32;  // also of the bias
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  List batch;  // outermost first; neighbours that are one axis in memory are merged
  Matrix a;
  Matrix b;
  Matrix c;
  bool has_bias = false;
  int64_t bias_stride = 0;
  Activation activation = Activation::None;

  int64_t batches() const;
};

// How a library reads a matrix with the two strides: rows or columns are dense and `ld` apart.
struct MatrixLayout {
  bool fits = false;
  bool transposed = false;  // columns are dense
  int64_t ld = 1;
};
MatrixLayout layoutOf(int64_t rows, int64_t columns, const MatmulShape::Matrix& matrix);

// Checks the descriptors against each other; UserError says which sizes or dtypes disagree. Batch
// axes that b lacks and that are one with the rows of a and c in memory, outside of them or within,
// become rows: [batch, m, k] x [k, n] is one product.
MatmulShape matmulShape(const MatmulSpec& spec);

// The transposed product: a result with dense columns is the row-major result of this one. Not for
// a product with a bias, which would lie along the rows.
MatmulShape transposed(const MatmulShape& shape);

// Walks the batches in order; `offset` of an operand is in elements.
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
