#include "host/device/cpu/cpu_matmul.h"

#include <cblas.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <type_traits>
#include <vector>

#include "ir/base/error.h"

namespace heddle::host {
namespace {

// The types of stored elements, for bool and for dtypes that C++ does not have.
struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};
struct F8e4m3 {
  uint8_t bits;
};
struct F8e5m2 {
  uint8_t bits;
};
// An element of an f8 operand, for both f8 types. A table maps its bits to a number.
struct F8 {
  uint8_t bits;
};
struct Byte {
  uint8_t value;
};

float load(Bf16 x) { return floatFromBf16(x.bits); }
float load(float x) { return x; }
double load(double x) { return x; }
float load(F16 x) { return floatFromF16(x.bits); }
float load(F8e4m3 x) { return floatFromF8e4m3(x.bits); }
float load(F8e5m2 x) { return floatFromF8e5m2(x.bits); }
// Integers are computed modulo 2^64. Narrow integers wrap when they are stored.
template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
uint64_t load(T x) {
  return static_cast<uint64_t>(x);
}
uint8_t load(Byte x) { return x.value != 0 ? 1 : 0; }

void store(Bf16& to, float x) { to.bits = bf16FromFloat(x); }
void store(float& to, float x) { to = x; }
void store(double& to, double x) { to = x; }
void store(F16& to, float x) { to.bits = f16FromFloat(x); }
void store(F8e4m3& to, float x) { to.bits = f8e4m3FromFloat(x); }
void store(F8e5m2& to, float x) { to.bits = f8e5m2FromFloat(x); }
template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
void store(T& to, uint64_t x) {
  to = static_cast<T>(x);
}
void store(Byte& to, uint8_t x) { to.value = x; }

// The largest size that BLAS accepts, because BLAS takes sizes as blasint.
constexpr int64_t kMostBlas = std::numeric_limits<blasint>::max();
constexpr int64_t kBlasBlock = int64_t{1} << 30;  // block size if no operand is packed

// Returns the numbers of all 256 bit patterns of an f8 type.
const float* float8Table(DType dtype) {
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

// A block of a matrix in memory that BLAS can read.
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

template <class T>
T sumOf(T a, T b) {
  return a + b;
}
uint8_t sumOf(uint8_t a, uint8_t b) { return a | b; }

// Computes c = a x b, or c += a x b if `adds` is true. c is row-major. The sizes must fit blasint.
template <class T>
void multiplyBlock(const Operand<T>& a, const Operand<T>& b, bool adds, T* c, int64_t ldc,
                   int64_t m, int64_t n, int64_t k) {
  if constexpr (std::is_floating_point_v<T>) {
    blas(a, b, adds ? T{1} : T{0}, c, ldc, m, n, k);
  } else {
    for (int64_t i = 0; i < m; ++i) {
      T* row = c + i * ldc;
      if (!adds) std::fill_n(row, n, T{0});
      for (int64_t p = 0; p < k; ++p) {
        const T factor = *a.at(i, p);
        for (int64_t j = 0; j < n; ++j) {
          const T term = static_cast<T>(factor * *b.at(p, j));
          row[j] = sumOf(row[j], term);
        }
      }
    }
  }
}

// Returns blocks of an operand in a form that multiplyBlock() can read. The block stays in place if
// possible; otherwise it is copied.
template <class Stored, class Compute>
class Reader {
 public:
  Reader(int64_t rows, int64_t columns, const MatmulShape::Matrix& matrix, DType dtype)
      : matrix_(matrix), layout_(layoutOf(rows, columns, matrix)), table_(float8Table(dtype)) {
    in_place_ = std::is_same_v<Stored, Compute> && layout_.fits && layout_.ld <= kMostBlas;
  }
  bool inPlace() const { return in_place_; }

  Operand<Compute> at(const Stored* data, int64_t row, int64_t rows, int64_t column,
                      int64_t columns) {
    if constexpr (std::is_same_v<Stored, Compute>) {
      const Operand<Compute> matrix{data, layout_.transposed, layout_.ld};
      if (in_place_) return {matrix.at(row, column), layout_.transposed, layout_.ld};
    }
    return pack(data + row * matrix_.row_stride + column * matrix_.column_stride, rows, columns);
  }

 private:
  // Copies a block. The inner axis of the copy is the axis with the smaller stride, so that reads
  // are dense.
  Operand<Compute> pack(const Stored* data, int64_t rows, int64_t columns) {
    const bool by_column = matrix_.row_stride < matrix_.column_stride;
    const int64_t outer = by_column ? columns : rows;
    const int64_t inner = by_column ? rows : columns;
    const int64_t outer_stride = by_column ? matrix_.column_stride : matrix_.row_stride;
    const int64_t inner_stride = by_column ? matrix_.row_stride : matrix_.column_stride;
    packed_.resize(static_cast<size_t>(outer * inner));
    Compute* to = packed_.data();
    for (int64_t i = 0; i < outer; ++i, to += inner) {
      const Stored* from = data + i * outer_stride;
      for (int64_t j = 0; j < inner; ++j) to[j] = valueOf(from[j * inner_stride]);
    }
    return {packed_.data(), by_column, std::max<int64_t>(inner, 1)};
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
  std::vector<Compute> packed_;
};

// Returns the value that x would have after it is stored as `Stored`: integers wrap. Activations
// are applied to this value.
template <class Stored, class T>
T wrapped(T x) {
  if constexpr (std::is_integral_v<Stored>) {
    return static_cast<T>(static_cast<Stored>(x));
  } else {
    return x;
  }
}

template <class T>
T activated(T x, Activation activation) {
  if (activation == Activation::Relu) {
    if constexpr (std::is_unsigned_v<T>) {  // x has the bits of an int64
      return static_cast<std::make_signed_t<T>>(x) < 0 ? T{0} : x;
    } else {
      return x < 0 ? T{0} : x;  // NaN remains NaN
    }
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (activation == Activation::GeluTanh) {  // Hendrycks and Gimpel 2016
      const T inner =
          static_cast<T>(0.7978845608028654) * (x + static_cast<T>(0.044715) * x * x * x);
      return static_cast<T>(0.5) * x * (T{1} + std::tanh(inner));
    }
  }
  return x;
}

// Computes unbatched matrix products of one shape, block by block.
template <class A, class B, class C, class Compute>
class Multiplication {
 public:
  explicit Multiplication(const MatmulShape& shape)
      : shape_(shape),
        left_(shape.m, shape.k, shape.a, shape.a_dtype),
        right_(shape.k, shape.n, shape.b, shape.b_dtype) {
    const MatrixLayout layout = layoutOf(shape.m, shape.n, shape.c);
    direct_ =
        std::is_same_v<C, Compute> && layout.fits && !layout.transposed && layout.ld <= kMostBlas;
    ld_ = layout.ld;
    block_ = direct_ && left_.inPlace() && right_.inPlace() ? kBlasBlock : kPackedBlock;
  }

  void run(const A* a, const B* b, const C* bias, C* c) {
    for (int64_t i = 0; i < shape_.m; i += block_) {
      const int64_t rows = std::min(block_, shape_.m - i);
      for (int64_t j = 0; j < shape_.n; j += block_) {
        const int64_t columns = std::min(block_, shape_.n - j);
        block(a, b, bias, c + i * shape_.c.row_stride + j * shape_.c.column_stride, i, rows, j,
              columns);
      }
    }
  }

 private:
  static constexpr int64_t kPackedBlock = 512;

  // Computes one block of c. If c has the type of the sums and a layout that BLAS supports, BLAS
  // writes the sums directly to c. Otherwise BLAS writes the sums to a scratch block. They are
  // rounded once, when they are copied to c.
  void block(const A* a, const B* b, const C* bias, C* c, int64_t i, int64_t rows, int64_t j,
             int64_t columns) {
    int64_t ld = columns;
    Compute* target = nullptr;
    if constexpr (std::is_same_v<C, Compute>) {
      if (direct_) {
        target = c;
        ld = std::max<int64_t>(ld_, 1);
      }
    }
    if (target == nullptr) {
      scratch_.resize(static_cast<size_t>(rows * columns));
      target = scratch_.data();
    }
    for (int64_t p = 0; p < shape_.k; p += block_) {
      const int64_t terms = std::min(block_, shape_.k - p);
      multiplyBlock(left_.at(a, i, rows, p, terms), right_.at(b, p, terms, j, columns), p > 0,
                    target, ld, rows, columns, terms);
    }
    const C* biases = bias == nullptr ? nullptr : bias + j * shape_.bias_stride;
    for (int64_t row = 0; row < rows; ++row) {
      Compute* values = target + row * ld;
      if (shape_.k == 0) std::fill_n(values, columns, Compute{0});
      finish(values, columns, biases);
      if (!direct_) put(values, columns, c + row * shape_.c.row_stride);
    }
  }

  // Applies bias and activation to a part of a row.
  void finish(Compute* values, int64_t count, const C* bias) const {
    if (bias != nullptr) {
      for (int64_t j = 0; j < count; ++j) {
        const Compute added = load(bias[j * shape_.bias_stride]);
        values[j] = sumOf(values[j], added);
      }
    }
    if (shape_.activation == Activation::None) return;
    for (int64_t j = 0; j < count; ++j) {
      values[j] = activated(wrapped<C>(values[j]), shape_.activation);
    }
  }

  void put(const Compute* values, int64_t count, C* to) const {
    for (int64_t j = 0; j < count; ++j) store(to[j * shape_.c.column_stride], values[j]);
  }

  const MatmulShape& shape_;
  Reader<A, Compute> left_;
  Reader<B, Compute> right_;
  std::vector<Compute> scratch_;
  bool direct_ = false;  // true: multiplyBlock() writes to c in place
  int64_t ld_ = 1;
  int64_t block_ = kPackedBlock;
};

template <class A, class B, class C, class Compute>
void multiply(const MatmulShape& shape, const MatmulOperands& operands) {
  Multiplication<A, B, C, Compute> multiplication(shape);
  BatchOffsets offsets(shape);
  const int64_t batches = shape.batches();
  for (int64_t i = 0; i < batches; ++i, offsets.next()) {
    multiplication.run(static_cast<const A*>(operands.a) + offsets.a(),
                       static_cast<const B*>(operands.b) + offsets.b(),
                       static_cast<const C*>(operands.bias),
                       static_cast<C*>(operands.c) + offsets.c());
  }
}

template <class Stored, class Compute>
void multiplyAlike(const MatmulShape& shape, const MatmulOperands& operands) {
  multiply<Stored, Stored, Stored, Compute>(shape, operands);
}

void multiplyFloat8(const MatmulShape& shape, const MatmulOperands& operands) {
  switch (shape.c_dtype) {
    case DType::F32:
      return multiply<F8, F8, float, float>(shape, operands);
    case DType::BF16:
      return multiply<F8, F8, Bf16, float>(shape, operands);
    case DType::F16:
      return multiply<F8, F8, F16, float>(shape, operands);
    case DType::F8E4M3:
      return multiply<F8, F8, F8e4m3, float>(shape, operands);
    default:
      return multiply<F8, F8, F8e5m2, float>(shape, operands);
  }
}

}  // namespace

void cpuMatmul(const MatmulShape& shape, const MatmulOperands& operands) {
  if (shape.m == 0 || shape.n == 0 || shape.batches() == 0) return;
  // If the columns of c are dense, the transposed matrix product is computed, because it can write
  // c in place.
  const MatrixLayout layout = layoutOf(shape.m, shape.n, shape.c);
  if (layout.fits && layout.transposed && !shape.has_bias) {
    MatmulOperands swapped = operands;
    std::swap(swapped.a, swapped.b);
    return cpuMatmul(transposed(shape), swapped);
  }
  if (isFloat8(shape.a_dtype)) return multiplyFloat8(shape, operands);
  switch (shape.c_dtype) {
    case DType::F32:
      return multiplyAlike<float, float>(shape, operands);
    case DType::F64:
      return multiplyAlike<double, double>(shape, operands);
    case DType::BF16:
      return multiplyAlike<Bf16, float>(shape, operands);
    case DType::I64:
      return multiplyAlike<int64_t, uint64_t>(shape, operands);
    case DType::Bool:
      return multiplyAlike<Byte, uint8_t>(shape, operands);
    case DType::U8:
      return multiplyAlike<uint8_t, uint64_t>(shape, operands);
    case DType::I8:
      return multiplyAlike<int8_t, uint64_t>(shape, operands);
    case DType::I32:
      return multiplyAlike<int32_t, uint64_t>(shape, operands);
    case DType::F16:
      return multiplyAlike<F16, float>(shape, operands);
    case DType::F8E4M3:
    case DType::F8E5M2:
      break;
  }
  HEDDLE_CHECK(false, "dtype {} is not in the enum", static_cast<int>(shape.c_dtype));
}

void setBlasThreadsOnce(int threads) {
  static std::once_flag once;
  std::call_once(once, [threads] {
    if (std::getenv("OPENBLAS_NUM_THREADS") == nullptr) openblas_set_num_threads(threads);
  });
}

}  // namespace heddle::host
