#include "ir/reference/dense.h"

#include <algorithm>
#include <cstring>

#include "ir/base/check.h"
#include "ir/reference/indexed.h"
#include "ir/reference/parallel.h"
#include "ir/reference/reduce.h"
#include "ir/reference/walk.h"

namespace heddle {
namespace {

constexpr int64_t kGrain = 64 * kBlock;

HostTensor pointwise(const ReferenceContext& context, const Expression& expr,
                     const std::vector<HostTensor>& values, HostTensor out) {
  const ElementCore core(context.fusion, expr);
  const Walk walk(out.sizes, accessesOf(context, expr).operands);
  const int64_t out_element = sizeOf(out.dtype);
  inParallel(out.numel(), kGrain, [&](int64_t begin, int64_t end) {
    std::vector<ElementRun> runs(values.size());
    walk.run(begin, end, [&](int64_t first, int64_t count, const std::vector<int64_t>& places) {
      for (size_t i = 0; i < runs.size(); ++i) {
        const DType dtype = values[i].dtype;
        runs[i] = {values[i].data.get() + places[i] * sizeOf(dtype), dtype, walk.stride(i)};
      }
      core.run(runs, count, out.data.get() + first * out_element);
    });
  });
  return out;
}

// Evaluates expand, permute, slice and diagonal, which only copy elements.
HostTensor gather(const ReferenceContext& context, const Expression& expr, const HostTensor& value,
                  HostTensor out) {
  const Walk walk(out.sizes, accessesOf(context, expr).operands);
  const size_t element = sizeOf(out.dtype);
  const int64_t step = walk.stride(0) * sizeOf(out.dtype);
  inParallel(out.numel(), kGrain, [&](int64_t begin, int64_t end) {
    walk.run(begin, end, [&](int64_t first, int64_t count, const std::vector<int64_t>& places) {
      const std::byte* from = value.data.get() + places[0] * static_cast<int64_t>(element);
      std::byte* to = out.data.get() + first * static_cast<int64_t>(element);
      for (int64_t i = 0; i < count; ++i, from += step, to += element) {
        std::memcpy(to, from, element);
      }
    });
  });
  return out;
}

// Evaluates reshape, broadcast and set. The result shares the bytes of the operand and has the
// sizes `sizes`.
HostTensor share(const ReferenceContext& context, const Expression& expr, const HostTensor& value,
                 std::vector<int64_t> sizes) {
  accessesOf(context, expr);  // checks the number of elements
  HostTensor out = value;
  out.sizes = std::move(sizes);
  return out;
}

// Computes one matrix product, in tiles of kRows by kColumns elements.
template <class T>
class MatrixProduct {
 public:
  // The left operand, which is dense.
  struct Left {
    const std::byte* data;
    DType dtype;
  };
  // The right operand, with strides along its rows (k) and columns (n).
  struct Right {
    const std::byte* data;
    DType dtype;
    int64_t row_stride;
    int64_t column_stride;
  };
  // `bias` may be nullptr. It has the dtype of the result.
  MatrixProduct(const Expression& expr, const Left& a, const Right& b, const std::byte* bias,
                std::byte* out, DType dtype, int64_t n, int64_t k)
      : expr_(expr),
        a_(a),
        b_(b),
        bias_(bias),
        out_(out),
        dtype_(dtype),
        n_(n),
        k_(k),
        element_(sizeOf(dtype)) {}

  // Computes the product, which has `m` rows. The tiles are independent, so several threads compute
  // them.
  void run(int64_t m) const {
    const int64_t down = (m + kRows - 1) / kRows;
    const int64_t across = (n_ + kColumns - 1) / kColumns;
    const int64_t work = kRows * kColumns * k_;  // multiplications per tile
    const int64_t grain = std::max<int64_t>(1, kLeastWork / std::max<int64_t>(1, work));
    // Consecutive tiles read the same columns of b, so that these columns stay in the cache.
    inParallel(down * across, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i % down * kRows;
        const int64_t column = i / down * kColumns;
        tile(row, std::min(kRows, m - row), column, std::min(kColumns, n_ - column));
      }
    });
  }

 private:
  static constexpr int64_t kRows = 32;
  static constexpr int64_t kColumns = 256;
  static constexpr int64_t kTerms = 256;  // number of terms of a partial sum in tile()
  // The smallest number of multiplications that is worth a thread of its own.
  static constexpr int64_t kLeastWork = int64_t{1} << 21;

  void tile(int64_t row, int64_t rows, int64_t column, int64_t columns) const {
    std::vector<T> left(rows * k_);
    Arithmetic<T>::load({a_.data + row * k_ * sizeOf(a_.dtype), a_.dtype, 1}, rows * k_, dtype_,
                        left.data());
    // Each partial sum has at most kTerms terms. The total is the sum of the partial sums.
    // The rounding error of a sum of k terms then grows with kTerms + k / kTerms instead of k.
    std::vector<T> total(rows * kColumns);
    std::vector<T> acc(total.size());
    T right[kColumns];
    for (int64_t first = 0; first < k_; first += kTerms) {
      std::fill(acc.begin(), acc.end(), T{0});
      for (int64_t k = first; k < std::min(first + kTerms, k_); ++k) {
        const int64_t from = k * b_.row_stride + column * b_.column_stride;
        Arithmetic<T>::load({b_.data + from * sizeOf(b_.dtype), b_.dtype, b_.column_stride},
                            columns, dtype_, right);
        for (int64_t r = 0; r < rows; ++r) {
          const T factor = left[r * k_ + k];
          T* to = acc.data() + r * kColumns;
          for (int64_t j = 0; j < columns; ++j) {
            to[j] = Arithmetic<T>::multiplyAdd(to[j], factor, right[j]);
          }
        }
      }
      for (size_t i = 0; i < total.size(); ++i) {
        total[i] = Arithmetic<T>::multiplyAdd(total[i], acc[i], T{1});
      }
    }
    finish(total.data(), rows, column, columns);
    for (int64_t r = 0; r < rows; ++r) {
      storeElements(total.data() + r * kColumns, columns, dtype_,
                    out_ + ((row + r) * n_ + column) * element_);
    }
  }

  // Adds the bias and applies the activation, before rounding.
  void finish(T* acc, int64_t rows, int64_t column, int64_t columns) const {
    T bias[kColumns] = {};
    if (bias_ != nullptr) {
      Arithmetic<T>::load({bias_ + column * element_, dtype_, 1}, columns, dtype_, bias);
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = 0; j < columns; ++j) {
        T& sum = acc[r * kColumns + j];
        if (bias_ != nullptr) sum = Arithmetic<T>::multiplyAdd(sum, bias[j], T{1});
        sum = activated(sum, dtype_, expr_);
      }
    }
  }

  const Expression& expr_;
  Left a_;
  Right b_;
  const std::byte* bias_;
  std::byte* out_;
  DType dtype_;
  int64_t n_;
  int64_t k_;
  int64_t element_;
};

template <class T>
HostTensor matmul(const ReferenceContext& context, const Expression& expr,
                  const std::vector<HostTensor>& values, HostTensor out) {
  const Accesses accesses = accessesOf(context, expr);
  const size_t rank = out.sizes.size();
  const int64_t m = out.sizes[rank - 2];
  const int64_t n = out.sizes[rank - 1];
  const int64_t element = sizeOf(out.dtype);
  // Walk only over the leading axes. Each combination of their indices is one matrix product.
  std::vector<Access> batches = accesses.operands;
  for (Access& batch : batches) batch.strides.resize(rank - 2);
  const std::vector<int64_t> batch_sizes(out.sizes.begin(), out.sizes.end() - 2);
  int64_t count = 1;
  for (int64_t size : batch_sizes) count *= size;
  const Walk walk(batch_sizes, std::move(batches));
  walk.run(0, count, [&](int64_t first, int64_t products, const std::vector<int64_t>& places) {
    for (int64_t i = 0; i < products; ++i) {
      const auto at = [&](size_t operand) {
        const HostTensor& value = values[operand];
        const int64_t place = places[operand] + i * walk.stride(operand);
        return value.data.get() + place * sizeOf(value.dtype);
      };
      MatrixProduct<T> product(expr, {at(0), values[0].dtype},
                               {at(1), values[1].dtype, accesses.operands[1].inner_strides[0],
                                accesses.operands[1].strides[rank - 1]},
                               values.size() > 2 ? values[2].data.get() : nullptr,
                               out.data.get() + (first + i) * m * n * element, out.dtype, n,
                               accesses.inner_sizes[0]);
      product.run(m);
    }
  });
  return out;
}

}  // namespace

HostTensor evaluateDense(const ReferenceContext& context, const Expression& expr,
                         const std::vector<HostTensor>& values) {
  const ValueId id = expr.outputs[0];
  const DType dtype = context.fusion.tensor(id).dtype;
  std::vector<int64_t> sizes = context.sizesOf(id);
  switch (expr.op->kind) {
    case OpKind::Reshape:
    case OpKind::Broadcast:
    case OpKind::Set:
      return share(context, expr, values[0], std::move(sizes));
    case OpKind::Pointwise:
      return pointwise(context, expr, values, HostTensor(dtype, std::move(sizes)));
    case OpKind::Expand:
    case OpKind::Permute:
    case OpKind::Slice:
    case OpKind::Diagonal:
      return gather(context, expr, values[0], HostTensor(dtype, std::move(sizes)));
    case OpKind::Reduction: {
      HostTensor out(dtype, std::move(sizes));
      return reduceElements(context, expr, values[0], std::move(out));
    }
    case OpKind::Matmul: {
      HostTensor out(dtype, std::move(sizes));
      return computesInts(dtype) ? matmul<int64_t>(context, expr, values, std::move(out))
                                 : matmul<double>(context, expr, values, std::move(out));
    }
    case OpKind::Full:
    case OpKind::Iota:
    case OpKind::Index:
    case OpKind::Scan:
    case OpKind::Scatter:
      return evaluateIndexed(context, expr, values);
    case OpKind::Constant:
    case OpKind::SizeOf:
      break;
  }
  HEDDLE_CHECK(false, "evaluateDense() cannot evaluate the op {}", expr.op->name);
}

}  // namespace heddle
