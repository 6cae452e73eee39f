#include "host/device/cpu/cpu_matmul.h"

#include <cblas.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <string_view>
#include <type_traits>
#include <utility>

#include "host/device/cpu/matmul_elements.h"
#include "host/device/cpu/matmul_operand.h"
#include "host/device/cpu/parallel_rows.h"
#include "host/device/cpu/part_grid.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace matmul {
namespace {

// The largest size that BLAS accepts, because BLAS takes sizes as blasint.
constexpr int64_t kMostBlas = std::numeric_limits<blasint>::max();
constexpr int64_t kBlasBlock = int64_t{1} << 30;  // block size if a, b and c are used in place
// Block sizes if blocks of a or b are copied, or if sums are copied to c. A block for a library is
// large, so that all threads have work; three blocks of f32 take 48 MiB. The loops for integers
// need blocks that fit in a cache.
constexpr int64_t kPackedBlock = 2048;
constexpr int64_t kIntegerBlock = 512;
constexpr int64_t kAlignment = 256;  // alignment of the parts of the workspace, in bytes

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

// Computes multiplyBlock() (below) for floats with oneDNN. The threads of the pool compute parts of
// the result.
void multiplyParts(const MatmulLibrary& library, TilePool& pool, const Operand<float>& a,
                   const Operand<float>& b, bool adds, float* c, int64_t ldc, int64_t m, int64_t n,
                   int64_t k) {
  const PartGrid grid = partGrid(1, m, n, k, pool.threads());
  const auto multiply = [&](int64_t part) {
    const int64_t i = part / grid.column_parts * grid.rows;
    const int64_t j = part % grid.column_parts * grid.columns;
    library.multiply({a.at(i, 0), a.transposed, a.ld}, {b.at(0, j), b.transposed, b.ld}, adds,
                     c + i * ldc + j, ldc, std::min(grid.rows, m - i),
                     std::min(grid.columns, n - j), k);
  };
  const auto run = [](const void* argument, int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      (*static_cast<const decltype(multiply)*>(argument))(part);
    }
  };
  pool.run(run, &multiply, grid.parts());
}

// Computes c = a x b, or c += a x b if `adds` is true. c is row-major. The sizes must fit blasint.
// `library` is oneDNN; if it is null, OpenBLAS multiplies f32. OpenBLAS always multiplies f64.
// Loops multiply integers and bools.
template <class T>
void multiplyBlock(const MatmulLibrary* library, TilePool& pool, const Operand<T>& a,
                   const Operand<T>& b, bool adds, T* c, int64_t ldc, int64_t m, int64_t n,
                   int64_t k) {
  if constexpr (std::is_same_v<T, float>) {
    if (library != nullptr) return multiplyParts(*library, pool, a, b, adds, c, ldc, m, n, k);
  }
  if constexpr (std::is_floating_point_v<T>) {
    blas(a, b, adds ? T{1} : T{0}, c, ldc, m, n, k);
  } else {
    forRows(pool, m, n * k, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
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
    });
  }
}

// Computes the batches of a matrix product one after another, and each batch block by block.
template <class A, class B, class C, class Compute>
class Multiplication {
 public:
  Multiplication(const MatmulShape& shape, const MatmulLibrary* library)
      : shape_(shape),
        library_(library),
        left_(shape.m, shape.k, shape.a, shape.a_dtype, kMostBlas),
        right_(shape.k, shape.n, shape.b, shape.b_dtype, kMostBlas) {
    const MatrixLayout layout = layoutOf(shape.m, shape.n, shape.c);
    direct_ =
        std::is_same_v<C, Compute> && layout.fits && !layout.transposed && layout.ld <= kMostBlas;
    ld_ = layout.ld;
    const bool packs = !(direct_ && left_.inPlace() && right_.inPlace());
    if (packs) block_ = std::is_floating_point_v<Compute> ? kPackedBlock : kIntegerBlock;
  }

  int64_t workspaceBytes() const { return leftBytes() + rightBytes() + sumBytes(); }

  // Computes all batches. `operands.workspace` must have workspaceBytes() bytes.
  void run(TilePool& pool, const MatmulOperands& operands) {
    auto* memory = static_cast<std::byte*>(operands.workspace);
    left_.packTo(reinterpret_cast<Compute*>(memory));
    right_.packTo(reinterpret_cast<Compute*>(memory + leftBytes()));
    sums_ = reinterpret_cast<Compute*>(memory + leftBytes() + rightBytes());
    BatchOffsets offsets(shape_);
    const int64_t batches = shape_.batches();
    for (int64_t i = 0; i < batches; ++i, offsets.next()) {
      runBatch(pool, elementAt(static_cast<const A*>(operands.a), offsets.a()),
               elementAt(static_cast<const B*>(operands.b), offsets.b()),
               static_cast<const C*>(operands.bias),
               elementAt(static_cast<C*>(operands.c), offsets.c()));
    }
  }

 private:
  // An empty tensor has no memory: its pointer may be null.
  template <class T>
  static T* elementAt(T* first, int64_t offset) {
    return first == nullptr ? nullptr : first + offset;
  }

  int64_t blockBytes(int64_t rows, int64_t columns) const {
    const int64_t elements = std::min(rows, block_) * std::min(columns, block_);
    const auto bytes = elements * static_cast<int64_t>(sizeof(Compute));
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  int64_t leftBytes() const { return left_.inPlace() ? 0 : blockBytes(shape_.m, shape_.k); }
  int64_t rightBytes() const { return right_.inPlace() ? 0 : blockBytes(shape_.k, shape_.n); }
  int64_t sumBytes() const { return direct_ ? 0 : blockBytes(shape_.m, shape_.n); }

  void runBatch(TilePool& pool, const A* a, const B* b, const C* bias, C* c) {
    for (int64_t i = 0; i < shape_.m; i += block_) {
      const int64_t rows = std::min(block_, shape_.m - i);
      for (int64_t j = 0; j < shape_.n; j += block_) {
        const int64_t columns = std::min(block_, shape_.n - j);
        block(pool, a, b, bias, c + i * shape_.c.row_stride + j * shape_.c.column_stride, i, rows,
              j, columns);
      }
    }
  }

  // Computes one block of c. If c has the type of the sums and a layout that BLAS supports,
  // multiplyBlock() writes the sums directly to c. Otherwise it writes the sums to the workspace.
  // The sums are rounded once, when they are copied to c.
  void block(TilePool& pool, const A* a, const B* b, const C* bias, C* c, int64_t i, int64_t rows,
             int64_t j, int64_t columns) {
    int64_t ld = columns;
    Compute* target = sums_;
    if constexpr (std::is_same_v<C, Compute>) {
      if (direct_) {
        target = c;
        ld = std::max<int64_t>(ld_, 1);
      }
    }
    for (int64_t p = 0; p < shape_.k; p += block_) {
      const int64_t terms = std::min(block_, shape_.k - p);
      multiplyBlock(library_, pool, left_.at(pool, a, i, rows, p, terms),
                    right_.at(pool, b, p, terms, j, columns), p > 0, target, ld, rows, columns,
                    terms);
    }
    const C* biases = bias == nullptr ? nullptr : bias + j * shape_.bias_stride;
    const bool finished = direct_ && bias == nullptr && shape_.activation == Activation::None;
    if (finished && shape_.k > 0) return;
    forRows(pool, rows, columns, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        Compute* values = target + row * ld;
        if (shape_.k == 0) std::fill_n(values, columns, Compute{0});
        finishRow(values, columns, biases, shape_.bias_stride, shape_.activation);
        C* to = c + row * shape_.c.row_stride;
        if (!direct_) storeRow(values, columns, to, shape_.c.column_stride);
      }
    });
  }

  const MatmulShape& shape_;
  const MatmulLibrary* library_;
  Reader<A, Compute> left_;
  Reader<B, Compute> right_;
  Compute* sums_ = nullptr;
  bool direct_ = false;  // true: multiplyBlock() writes to c in place
  int64_t ld_ = 1;
  int64_t block_ = kBlasBlock;
};

template <class A, class B, class C, class Compute, class Use>
void useTypes(const MatmulShape& shape, const MatmulLibrary* library, const Use& use) {
  Multiplication<A, B, C, Compute> multiplication(shape, library);
  use(multiplication);
}

template <class Use>
void useFloat8(const MatmulShape& shape, const MatmulLibrary* library, const Use& use) {
  switch (shape.c_dtype) {
    case DType::F32:
      return useTypes<F8, F8, float, float>(shape, library, use);
    case DType::BF16:
      return useTypes<F8, F8, Bf16, float>(shape, library, use);
    case DType::F16:
      return useTypes<F8, F8, F16, float>(shape, library, use);
    case DType::F8E4M3:
      return useTypes<F8, F8, F8e4m3, float>(shape, library, use);
    default:
      return useTypes<F8, F8, F8e5m2, float>(shape, library, use);
  }
}

template <class Stored, class Compute, class Use>
void useAlike(const MatmulShape& shape, const MatmulLibrary* library, const Use& use) {
  useTypes<Stored, Stored, Stored, Compute>(shape, library, use);
}

// Calls use(multiplication) with a Multiplication for the dtypes of the shape.
template <class Use>
void useMultiplication(const MatmulShape& shape, const MatmulLibrary* library, const Use& use) {
  if (isFloat8(shape.a_dtype)) return useFloat8(shape, library, use);
  switch (shape.c_dtype) {
    case DType::F32:
      return useAlike<float, float>(shape, library, use);
    case DType::F64:
      return useAlike<double, double>(shape, library, use);
    case DType::BF16:
      return useAlike<Bf16, float>(shape, library, use);
    case DType::I64:
      return useAlike<int64_t, uint64_t>(shape, library, use);
    case DType::Bool:
      return useAlike<Byte, uint8_t>(shape, library, use);
    case DType::U8:
      return useAlike<uint8_t, uint64_t>(shape, library, use);
    case DType::I8:
      return useAlike<int8_t, uint64_t>(shape, library, use);
    case DType::I32:
      return useAlike<int32_t, uint64_t>(shape, library, use);
    case DType::F16:
      return useAlike<F16, float>(shape, library, use);
    case DType::F8E4M3:
    case DType::F8E5M2:
      break;
  }
  HEDDLE_CHECK(false, "dtype {} is not in the enum", static_cast<int>(shape.c_dtype));
}

}  // namespace
}  // namespace matmul

CpuMatmul::CpuMatmul(MatmulShape shape, const matmul::MatmulLibrary* library, int threads)
    : shape_(std::move(shape)), library_(library) {
  if (shape_.m == 0 || shape_.n == 0 || shape_.batches() == 0) return;
  // If only the columns of c are dense and there is no bias, the transposed matrix product is
  // computed, because its result has dense rows.
  const MatrixLayout layout = layoutOf(shape_.m, shape_.n, shape_.c);
  transposed_ = layout.fits && layout.transposed && !shape_.has_bias;
  if (transposed_) shape_ = transposed(shape_);
  if (library_ != nullptr) parts_ = matmul::PartMatmul::make(shape_, *library_, threads);
  if (parts_ != nullptr) {
    workspace_bytes_ = parts_->workspaceBytes();
    return;
  }
  matmul::useMultiplication(shape_, library_, [this](const auto& product) {
    workspace_bytes_ = product.workspaceBytes();
  });
}

void CpuMatmul::run(MatmulOperands operands, TilePool& pool) const {
  if (shape_.m == 0 || shape_.n == 0 || shape_.batches() == 0) return;
  if (transposed_) std::swap(operands.a, operands.b);
  if (parts_ != nullptr) return parts_->run(operands, pool);
  matmul::useMultiplication(shape_, library_, [&](auto& product) { product.run(pool, operands); });
}

std::string openBlasVersion() {
  // The text begins with the version: OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...
  const std::string_view text = openblas_get_config();
  return std::string(text.substr(0, text.find(' ', text.find(' ') + 1)));
}

void setBlasThreadsOnce(int threads) {
  static std::once_flag once;
  std::call_once(once, [threads] {
    if (std::getenv("OPENBLAS_NUM_THREADS") == nullptr) openblas_set_num_threads(threads);
  });
}

}  // namespace heddle::host
