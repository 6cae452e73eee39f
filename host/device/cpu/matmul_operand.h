#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "host/device/cpu/matmul_elements.h"
#include "host/device/cpu/parallel_rows.h"
#include "host/device/matmul_shape.h"

namespace heddle::host::matmul {

// A matrix, or a block of a matrix, in a layout that BLAS can read. `transposed` and `ld` have the
// same meaning as in MatrixLayout (host/device/matmul_shape.h).
template <class T>
struct Operand {
  const T* data = nullptr;
  bool transposed = false;
  int64_t ld = 1;
  const T* at(int64_t row, int64_t column) const {
    return transposed ? data + column * ld + row : data + row * ld + column;
  }
};

// Returns a table with the value of each bit pattern (0 to 255) of an f8 type.
inline const float* float8Table(DType dtype) {
  static const auto tables = [] {
    std::array<std::array<float, 256>, 2> values;
    for (size_t i = 0; i < 256; ++i) {
      values[0][i] = floatFromF8e4m3(static_cast<uint8_t>(i));
      values[1][i] = floatFromF8e5m2(static_cast<uint8_t>(i));
    }
    return values;
  }();
  return tables[dtype == DType::F8E4M3 ? 0 : 1].data();
}

// Provides blocks of an operand in a form that BLAS can read. If BLAS can read the operand in
// place, at() returns the block in the operand. Otherwise at() copies the block to the memory that
// was passed to packTo(), with the threads of the pool. If at() is called again for the block that
// was copied last, the block is not copied again.
template <class Stored, class Compute>
class Reader {
 public:
  // `most_ld` is the largest leading dimension that BLAS accepts.
  Reader(int64_t rows, int64_t columns, const MatmulShape::Matrix& matrix, DType dtype,
         int64_t most_ld)
      : matrix_(matrix), layout_(layoutOf(rows, columns, matrix)), table_(float8Table(dtype)) {
    in_place_ = std::is_same_v<Stored, Compute> && layout_.fits && layout_.ld <= most_ld;
  }
  bool inPlace() const { return in_place_; }
  // Sets the memory for copied blocks.
  void packTo(Compute* packed) { packed_ = packed; }

  Operand<Compute> at(TilePool& pool, const Stored* data, int64_t row, int64_t rows, int64_t column,
                      int64_t columns) {
    if constexpr (std::is_same_v<Stored, Compute>) {
      const Operand<Compute> matrix{data, layout_.transposed, layout_.ld};
      if (in_place_) return {matrix.at(row, column), layout_.transposed, layout_.ld};
    }
    return pack(pool, data + row * matrix_.row_stride + column * matrix_.column_stride, rows,
                columns);
  }

 private:
  // Copies a block. The inner axis of the copy is the axis with the smaller stride, so that
  // successive reads are close together.
  Operand<Compute> pack(TilePool& pool, const Stored* data, int64_t rows, int64_t columns) {
    const bool by_column = matrix_.row_stride < matrix_.column_stride;
    const int64_t outer = by_column ? columns : rows;
    const int64_t inner = by_column ? rows : columns;
    const int64_t outer_stride = by_column ? matrix_.column_stride : matrix_.row_stride;
    const int64_t inner_stride = by_column ? matrix_.row_stride : matrix_.column_stride;
    if (data != last_ || outer != last_outer_ || inner != last_inner_) {
      forRows(pool, outer, inner, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          copyRow(data + i * outer_stride, inner_stride, packed_ + i * inner, inner);
        }
      });
      last_ = data;
      last_outer_ = outer;
      last_inner_ = inner;
    }
    return {packed_, by_column, std::max<int64_t>(inner, 1)};
  }

  void copyRow(const Stored* from, int64_t stride, Compute* to, int64_t count) const {
    if (stride == 1) {
      for (int64_t j = 0; j < count; ++j) to[j] = valueOf(from[j]);
      return;
    }
    for (int64_t j = 0; j < count; ++j) to[j] = valueOf(from[j * stride]);
  }

  Compute valueOf(Stored stored) const {
    if constexpr (std::is_same_v<Stored, F8>) {
      return table_[stored.bits];
    } else {
      return load(stored);
    }
  }

  const MatmulShape::Matrix& matrix_;
  MatrixLayout layout_;
  const float* table_;
  bool in_place_ = false;
  Compute* packed_ = nullptr;
  // The block that `packed_` contains.
  const Stored* last_ = nullptr;
  int64_t last_outer_ = 0;
  int64_t last_inner_ = 0;
};

}  // namespace heddle::host::matmul
