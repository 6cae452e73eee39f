#include "host/device/cpu/part_matmul.h"

#include <algorithm>
#include <type_traits>

#include "host/device/cpu/matmul_elements.h"

namespace heddle::host::matmul {
namespace {

constexpr int64_t kPartAlignment = 256;  // alignment of sums and scratch memory, in bytes

int64_t aligned(int64_t bytes) { return ceilDiv(bytes, kPartAlignment) * kPartAlignment; }

}  // namespace

struct PartMatmul::Job {
  const PartMatmul& matmul;
  const MatmulOperands& operands;
};

struct PartMatmul::Part {
  int64_t row = 0;
  int64_t rows = 0;
  int64_t column = 0;
  int64_t columns = 0;
  bool last_row = false;
  bool last_column = false;
  // Offsets of the batch in a, b and c, in elements.
  int64_t a = 0;
  int64_t b = 0;
  int64_t c = 0;
};

std::unique_ptr<const PartMatmul> PartMatmul::make(const MatmulShape& shape,
                                                   const MatmulLibrary& library, int threads) {
  const DType dtype = shape.c_dtype;
  if (dtype != DType::F32 && dtype != DType::BF16) return nullptr;
  if (shape.a_dtype != dtype || shape.b_dtype != dtype || shape.k == 0) return nullptr;
  std::unique_ptr<PartMatmul> made(new PartMatmul(shape, library, threads));
  if (!made->a_.fits || !made->b_.fits) return nullptr;
  if (dtype == DType::BF16 && !made->prepareProducts()) return nullptr;
  made->setTiles(threads);
  return made;
}

PartMatmul::PartMatmul(const MatmulShape& shape, const MatmulLibrary& library, int threads)
    : shape_(shape),
      library_(library),
      a_(layoutOf(shape.m, shape.k, shape.a)),
      b_(layoutOf(shape.k, shape.n, shape.b)),
      c_(layoutOf(shape.m, shape.n, shape.c)),
      grid_(partGrid(shape.batches(), shape.m, shape.n, shape.k, threads)) {
  // A bias and an activation are applied to f32 sums. A bf16 result with a bias or an activation
  // therefore needs the workspace.
  const bool finished = !shape.has_bias && shape.activation == Activation::None;
  direct_ = c_.fits && !c_.transposed && (finished || shape.c_dtype == DType::F32);
  if (!direct_) sum_bytes_ = aligned(grid_.rows * grid_.columns * int64_t{sizeof(float)});
}

bool PartMatmul::prepareProducts() {
  const auto last = [](int64_t extent, int64_t part) {
    return extent - (extent - 1) / part * part;
  };
  for (size_t last_row = 0; last_row < 2; ++last_row) {
    for (size_t last_column = 0; last_column < 2; ++last_column) {
      // If there is only one row of parts, it is the last row. The same applies to columns.
      if (last_row == 0 && grid_.row_parts == 1) continue;
      if (last_column == 0 && grid_.column_parts == 1) continue;
      Bf16Matmul product;
      product.m = last_row != 0 ? last(shape_.m, grid_.rows) : grid_.rows;
      product.n = last_column != 0 ? last(shape_.n, grid_.columns) : grid_.columns;
      product.k = shape_.k;
      product.a = a_;
      product.b = b_;
      product.c_dtype = direct_ ? DType::BF16 : DType::F32;
      product.ldc = direct_ ? c_.ld : product.n;
      auto& prepared = products_[last_row][last_column];
      prepared = library_.prepare(product);
      if (prepared == nullptr) return false;
    }
  }
  return true;
}

void PartMatmul::setTiles(int threads) {
  const int64_t parts = shape_.batches() * grid_.parts();
  tile_bytes_ = sum_bytes_;
  for (const auto& row : products_) {
    for (const auto& product : row) {
      if (product == nullptr) continue;
      tile_bytes_ = std::max(tile_bytes_, sum_bytes_ + aligned(product->workspaceBytes()));
    }
  }
  tiles_ = tile_bytes_ > 0 ? std::min<int64_t>(parts, threads) : parts;
}

PartMatmul::Part PartMatmul::partAt(int64_t index) const {
  Part part;
  const int64_t in_batch = index % grid_.parts();
  int64_t batch = index / grid_.parts();
  for (size_t axis = shape_.batch.size(); axis-- > 0;) {
    const int64_t at = batch % shape_.batch[axis];
    batch /= shape_.batch[axis];
    part.a += at * shape_.a.batch_strides[axis];
    part.b += at * shape_.b.batch_strides[axis];
    part.c += at * shape_.c.batch_strides[axis];
  }
  part.row = in_batch / grid_.column_parts * grid_.rows;
  part.column = in_batch % grid_.column_parts * grid_.columns;
  part.rows = std::min(grid_.rows, shape_.m - part.row);
  part.columns = std::min(grid_.columns, shape_.n - part.column);
  part.last_row = part.row + part.rows == shape_.m;
  part.last_column = part.column + part.columns == shape_.n;
  return part;
}

template <class T>
void PartMatmul::runPart(const MatmulOperands& operands, const Part& part,
                         std::byte* workspace) const {
  const auto operand = [](const void* data, const MatrixLayout& layout, int64_t offset, int64_t row,
                          int64_t column) {
    const Operand<T> matrix{static_cast<const T*>(data) + offset, layout.transposed, layout.ld};
    return Operand<T>{matrix.at(row, column), layout.transposed, layout.ld};
  };
  const Operand<T> a = operand(operands.a, a_, part.a, part.row, 0);
  const Operand<T> b = operand(operands.b, b_, part.b, 0, part.column);
  T* c = static_cast<T*>(operands.c) + part.c + part.row * shape_.c.row_stride +
         part.column * shape_.c.column_stride;
  void* target = direct_ ? static_cast<void*>(c) : workspace;
  const int64_t ld = direct_ ? c_.ld : part.columns;
  if constexpr (std::is_same_v<T, float>) {
    library_.multiply(a, b, false, static_cast<float*>(target), ld, part.rows, part.columns,
                      shape_.k);
  } else {
    const auto& product = *products_[part.last_row ? 1 : 0][part.last_column ? 1 : 0];
    product.run(a.data, b.data, target, workspace + sum_bytes_);
  }
  if (direct_ && !shape_.has_bias && shape_.activation == Activation::None) return;
  const T* bias = operands.bias == nullptr
                      ? nullptr
                      : static_cast<const T*>(operands.bias) + part.column * shape_.bias_stride;
  for (int64_t row = 0; row < part.rows; ++row) {
    float* sums = static_cast<float*>(target) + row * ld;
    finishRow(sums, part.columns, bias, shape_.bias_stride, shape_.activation);
    if (!direct_) {
      storeRow(sums, part.columns, c + row * shape_.c.row_stride, shape_.c.column_stride);
    }
  }
}

void PartMatmul::run(const MatmulOperands& operands, TilePool& pool) const {
  const Job job{*this, operands};
  const auto run_tiles = [](const void* argument, int64_t begin, int64_t end) {
    const Job& job = *static_cast<const Job*>(argument);
    const PartMatmul& self = job.matmul;
    const int64_t parts = self.shape_.batches() * self.grid_.parts();
    for (int64_t tile = begin; tile < end; ++tile) {
      std::byte* workspace =
          static_cast<std::byte*>(job.operands.workspace) + tile * self.tile_bytes_;
      for (int64_t index = tile; index < parts; index += self.tiles_) {
        const Part part = self.partAt(index);
        if (self.shape_.c_dtype == DType::F32) {
          self.runPart<float>(job.operands, part, workspace);
        } else {
          self.runPart<Bf16>(job.operands, part, workspace);
        }
      }
    }
  };
  pool.run(run_tiles, &job, tiles_);
}

}  // namespace heddle::host::matmul
