#include "host/cpu_matmul.h"

#include <cblas.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <type_traits>

#include "ir/error.h"

namespace heddle::host {
namespace {

// Elements of bf16 and bool in memory.
struct Bf16 {
  uint16_t bits;
};
struct Byte {
  uint8_t value;
};

float load(Bf16 x) { return floatFromBf16(x.bits); }
float load(float x) { return x; }
double load(double x) { return x; }
uint64_t load(int64_t x) { return static_cast<uint64_t>(x); }
uint8_t load(Byte x) { return x.value != 0 ? 1 : 0; }

void store(Bf16& to, float x) { to.bits = bf16FromFloat(x); }
void store(float& to, float x) { to = x; }
void store(double& to, double x) { to = x; }
void store(int64_t& to, uint64_t x) { to = static_cast<int64_t>(x); }
void store(Byte& to, uint8_t x) { to.value = x; }

// BLAS takes sizes as int.
constexpr int64_t kMostBlas = std::numeric_limits<blasint>::max();
constexpr int64_t kBlasBlock = int64_t{1} << 30;

template <class T>
struct Operand {
  const T* data = nullptr;
  bool transposed = false;
  int64_t ld = 1;
  const T* at(int64_t row, int64_t column) const {
    return transposed ? data + column * ld + row : data + row * ld + column;
  }
};

void blas(const Operand<float>& a, const Operand<float>& b, float beta, float* c, int64_t ldc,
          int64_t m, int64_t n, int64_t k) {
  cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
              b.transposed ? CblasTrans : CblasNoTrans, static_cast<blasint>(m),
              static_cast<blasint>(n), static_cast<blasint>(k), 1.0F, a.data,
              static_cast<blasint>(a.ld), b.data, static_cast<blasint>(b.ld), beta, c,
              static_cast<blasint>(ldc));
}

void blas(const Operand<double>& a, const Operand<double>& b, double beta, double* c, int64_t ldc,
          int64_t m, int64_t n, int64_t k) {
  cblas_dgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
              b.transposed ? CblasTrans : CblasNoTrans, static_cast<blasint>(m),
              static_cast<blasint>(n), static_cast<blasint>(k), 1.0, a.data,
              static_cast<blasint>(a.ld), b.data, static_cast<blasint>(b.ld), beta, c,
              static_cast<blasint>(ldc));
}

// c is row-major. Floats through BLAS in blocks that its int can count.
template <class T>
void product(const Operand<T>& a, const Operand<T>& b, T* c, int64_t ldc, int64_t m, int64_t n,
             int64_t k) {
  if constexpr (std::is_floating_point_v<T>) {
    for (int64_t i = 0; i < m; i += kBlasBlock) {
      for (int64_t j = 0; j < n; j += kBlasBlock) {
        for (int64_t p = 0; p < k; p += kBlasBlock) {
          blas({a.at(i, p), a.transposed, a.ld}, {b.at(p, j), b.transposed, b.ld},
               p == 0 ? T{0} : T{1}, c + i * ldc + j, ldc, std::min(kBlasBlock, m - i),
               std::min(kBlasBlock, n - j), std::min(kBlasBlock, k - p));
        }
      }
    }
  } else {
    for (int64_t i = 0; i < m; ++i) {
      T* row = c + i * ldc;
      std::fill_n(row, n, T{0});
      for (int64_t p = 0; p < k; ++p) {
        const T factor = *a.at(i, p);
        for (int64_t j = 0; j < n; ++j) {
          const T term = static_cast<T>(factor * *b.at(p, j));
          row[j] = std::is_same_v<T, uint8_t> ? static_cast<T>(row[j] | term)
                                              : static_cast<T>(row[j] + term);
        }
      }
    }
  }
}

// An operand as the product reads it: in place where that is possible, else a packed copy, which is
// kept while the next batch reads the same matrix.
template <class Stored, class Compute>
class Reader {
 public:
  Reader(int64_t rows, int64_t columns, const MatmulShape::Matrix& matrix)
      : rows_(rows), columns_(columns), matrix_(matrix), layout_(layoutOf(rows, columns, matrix)) {}

  Operand<Compute> at(const Stored* data) {
    if constexpr (std::is_same_v<Stored, Compute>) {
      if (layout_.fits && layout_.ld <= kMostBlas) return {data, layout_.transposed, layout_.ld};
    }
    if (data != packed_from_) pack(data);
    return {packed_.get(), false, std::max<int64_t>(columns_, 1)};
  }

 private:
  void pack(const Stored* data) {
    if (!packed_) {
      packed_ = std::make_unique_for_overwrite<Compute[]>(static_cast<size_t>(rows_ * columns_));
    }
    for (int64_t i = 0; i < rows_; ++i) {
      const Stored* row = data + i * matrix_.row_stride;
      Compute* to = packed_.get() + i * columns_;
      for (int64_t j = 0; j < columns_; ++j) to[j] = load(row[j * matrix_.column_stride]);
    }
    packed_from_ = data;
  }

  int64_t rows_;
  int64_t columns_;
  const MatmulShape::Matrix& matrix_;
  MatrixLayout layout_;
  std::unique_ptr<Compute[]> packed_;
  const Stored* packed_from_ = nullptr;
};

// Row-major in place, or through a dense scratch matrix.
template <class Stored, class Compute>
class Writer {
 public:
  explicit Writer(const MatmulShape& shape) : shape_(shape) {
    const MatrixLayout layout = layoutOf(shape.m, shape.n, shape.c);
    in_place_ = std::is_same_v<Stored, Compute> && layout.fits && !layout.transposed &&
                layout.ld <= kMostBlas;
    ld_ = in_place_ ? layout.ld : shape.n;
    if (!in_place_) {
      scratch_ = std::make_unique_for_overwrite<Compute[]>(static_cast<size_t>(shape.m * shape.n));
    }
  }
  int64_t ld() const { return ld_; }
  Compute* target(Stored* data) const {
    if constexpr (std::is_same_v<Stored, Compute>) {
      if (in_place_) return data;
    }
    return scratch_.get();
  }
  void finish(Stored* data) const {
    if (in_place_) return;
    for (int64_t i = 0; i < shape_.m; ++i) {
      Stored* row = data + i * shape_.c.row_stride;
      const Compute* from = scratch_.get() + i * shape_.n;
      for (int64_t j = 0; j < shape_.n; ++j) store(row[j * shape_.c.column_stride], from[j]);
    }
  }

 private:
  const MatmulShape& shape_;
  bool in_place_ = false;
  int64_t ld_ = 1;
  std::unique_ptr<Compute[]> scratch_;
};

template <class Stored, class Compute>
void multiply(const MatmulShape& shape, const void* a, const void* b, void* c) {
  Reader<Stored, Compute> left(shape.m, shape.k, shape.a);
  Reader<Stored, Compute> right(shape.k, shape.n, shape.b);
  Writer<Stored, Compute> result(shape);
  BatchOffsets offsets(shape);
  const int64_t batches = shape.batches();
  for (int64_t i = 0; i < batches; ++i, offsets.next()) {
    Stored* to = static_cast<Stored*>(c) + offsets.c();
    Compute* target = result.target(to);
    if (shape.k == 0) {
      for (int64_t row = 0; row < shape.m; ++row) {
        std::fill_n(target + row * result.ld(), shape.n, Compute{0});
      }
    } else {
      product(left.at(static_cast<const Stored*>(a) + offsets.a()),
              right.at(static_cast<const Stored*>(b) + offsets.b()), target, result.ld(), shape.m,
              shape.n, shape.k);
    }
    result.finish(to);
  }
}

}  // namespace

void cpuMatmul(const MatmulShape& shape, const void* a, const void* b, void* c) {
  if (shape.m == 0 || shape.n == 0 || shape.batches() == 0) return;
  // A result with dense columns is the row-major result of the transposed product.
  const MatrixLayout layout = layoutOf(shape.m, shape.n, shape.c);
  if (layout.fits && layout.transposed) {
    MatmulShape swapped = shape;
    std::swap(swapped.m, swapped.n);
    swapped.a = shape.b;
    swapped.b = shape.a;
    for (MatmulShape::Matrix* x : {&swapped.a, &swapped.b, &swapped.c}) {
      std::swap(x->row_stride, x->column_stride);
    }
    cpuMatmul(swapped, b, a, c);
    return;
  }
  switch (shape.dtype) {
    case DType::F32:
      return multiply<float, float>(shape, a, b, c);
    case DType::F64:
      return multiply<double, double>(shape, a, b, c);
    case DType::BF16:
      return multiply<Bf16, float>(shape, a, b, c);
    case DType::I64:
      return multiply<int64_t, uint64_t>(shape, a, b, c);
    case DType::Bool:
      return multiply<Byte, uint8_t>(shape, a, b, c);
  }
}

void setBlasThreadsOnce(int threads) {
  static std::once_flag once;
  std::call_once(once, [threads] {
    if (std::getenv("OPENBLAS_NUM_THREADS") == nullptr) openblas_set_num_threads(threads);
  });
}

}  // namespace heddle::host
