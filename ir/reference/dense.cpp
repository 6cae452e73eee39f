#include "ir/reference/dense.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <system_error>
#include <thread>

#include "ir/analysis/axis_map.h"
#include "ir/base/error.h"
#include "ir/reference/indexed.h"

namespace heddle {
namespace {

// Splits the range [0, count) into parts and calls task(begin, end) for each part, on several
// threads if there is enough work. The length of each part, except the last one, is a multiple of
// `grain`. The parts must be independent, so that the result does not depend on the number of
// threads.
void inParallel(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& task) {
  const int64_t threads = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, 16);
  const int64_t grains = (count + grain - 1) / grain;
  if (threads == 1 || grains < 2 * threads) return task(0, count);
  const int64_t part = (grains + threads - 1) / threads * grain;
  std::vector<std::thread> workers;
  for (int64_t begin = part; begin < count; begin += part) {
    const int64_t end = std::min(begin + part, count);
    try {
      workers.emplace_back([&task, begin, end] { task(begin, end); });
    } catch (const std::system_error&) {
      task(begin, end);  // the system starts no more threads
    }
  }
  task(0, std::min(part, count));
  for (std::thread& worker : workers) worker.join();
}

// Walks over the elements of a row-major shape, and computes the index of each element in several
// strided operands. Neighbouring axes are merged if every operand can be read along them with one
// stride. Rows then become longer and the walk becomes faster.
class Walk {
 public:
  Walk(std::vector<int64_t> sizes, std::vector<Access> operands)
      : sizes_(std::move(sizes)), operands_(std::move(operands)) {
    if (sizes_.empty()) {
      sizes_ = {1};
      for (Access& operand : operands_) operand.strides = {0};
    }
    merge();
  }

  // Calls visit(first, count, places) for blocks of at most kBlock elements. A block has `count`
  // elements from the linear index `first` on. The indices of these elements in operand i are
  // places[i], places[i] + stride(i), ...
  template <class Visit>
  void run(int64_t begin, int64_t end, Visit visit) const {
    std::vector<int64_t> places(operands_.size());
    const int64_t row = sizes_.back();
    for (int64_t at = begin; at < end;) {
      locate(at, places);
      const int64_t in_row = at % row;
      const int64_t stop = std::min(end, at - in_row + row);
      for (; at < stop;) {
        const int64_t count = std::min(kBlock, stop - at);
        visit(at, count, places);
        at += count;
        for (size_t i = 0; i < places.size(); ++i) places[i] += count * stride(i);
      }
    }
  }

  int64_t stride(size_t operand) const { return operands_[operand].strides.back(); }

 private:
  void merge() {
    for (size_t i = sizes_.size() - 1; i-- > 0;) {
      bool one = sizes_[i] == 1 || sizes_[i + 1] == 1 ||
                 std::all_of(operands_.begin(), operands_.end(), [&](const Access& operand) {
                   return operand.strides[i] == operand.strides[i + 1] * sizes_[i + 1];
                 });
      if (!one) continue;
      // Keep the stride of the axis with more elements, because the stride of an axis of one
      // element is meaningless.
      const size_t kept = sizes_[i + 1] == 1 ? i : i + 1;
      for (Access& operand : operands_) {
        operand.strides[i] = operand.strides[kept];
        operand.strides.erase(operand.strides.begin() + static_cast<int64_t>(i) + 1);
      }
      sizes_[i] *= sizes_[i + 1];
      sizes_.erase(sizes_.begin() + static_cast<int64_t>(i) + 1);
    }
  }

  void locate(int64_t linear, std::vector<int64_t>& places) const {
    for (size_t i = 0; i < places.size(); ++i) places[i] = operands_[i].offset;
    for (size_t axis = sizes_.size(); axis-- > 0;) {
      const int64_t coordinate = linear % sizes_[axis];
      linear /= sizes_[axis];
      for (size_t i = 0; i < places.size(); ++i) {
        places[i] += coordinate * operands_[i].strides[axis];
      }
    }
  }

  std::vector<int64_t> sizes_;
  std::vector<Access> operands_;
};

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

// Evaluates expand, permute and slice, which only copy elements.
HostTensor gather(const ReferenceContext& context, const Expression& expr, const HostTensor& value,
                  HostTensor out) {
  const Walk walk(out.sizes, accessesOf(context, expr).operands);
  const auto element = static_cast<size_t>(sizeOf(out.dtype));
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

// Evaluates reshape, broadcast and set: the result has the same bytes and other sizes.
HostTensor share(const ReferenceContext& context, const Expression& expr, const HostTensor& value,
                 std::vector<int64_t> sizes) {
  accessesOf(context, expr);  // checks the number of elements
  HostTensor out = value;
  out.sizes = std::move(sizes);
  return out;
}

// Reduces the input, which it reads in row-major order. Every output element therefore accumulates
// its operands in row-major order of the reduced axes, as in the sparse evaluation.
template <class T>
HostTensor reduce(const ReferenceContext& context, const Expression& expr, const HostTensor& value,
                  HostTensor out) {
  const AxisMap map = axisMapOf(context.fusion, expr);
  const std::vector<int64_t> out_strides = denseStrides(out.sizes);
  Access into{0, std::vector<int64_t>(map.space.size(), 0), {}};
  for (size_t i = 0; i < map.outputs[0].size(); ++i) {
    const int axis = map.outputs[0][i];
    if (axis != AxisMap::kNone) into.strides[static_cast<size_t>(axis)] = out_strides[i];
  }
  HEDDLE_CHECK(expr.op->reduce_op.has_value(), "{} has no reduction", expr.op->name);
  std::vector<T> acc(static_cast<size_t>(out.numel()),
                     Arithmetic<T>::identity(*expr.op, out.dtype));
  const auto combine = Arithmetic<T>::combine(*expr.op);
  const Walk walk(value.sizes, {into});
  const int64_t step = walk.stride(0);
  const int64_t element = sizeOf(value.dtype);
  T block[kBlock];
  walk.run(0, value.numel(), [&](int64_t first, int64_t count, const std::vector<int64_t>& places) {
    Arithmetic<T>::load({value.data.get() + first * element, value.dtype, 1}, count, out.dtype,
                        block);
    T* to = acc.data() + places[0];
    for (int64_t i = 0; i < count; ++i) {
      const T pair[] = {to[i * step], block[i]};
      to[i * step] = combine(pair);
    }
  });
  storeElements(acc.data(), out.numel(), out.dtype, out.data.get());
  return out;
}

// Computes rows of one matrix product, in tiles of kRows by kColumns elements.
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

  void rows(int64_t begin, int64_t end) const {
    for (int64_t row = begin; row < end; row += kRows) {
      tile(row, std::min(kRows, end - row));
    }
  }

 private:
  static constexpr int64_t kRows = 16;
  static constexpr int64_t kColumns = 512;

  void tile(int64_t row, int64_t rows) const {
    std::vector<T> left(static_cast<size_t>(rows * k_));
    Arithmetic<T>::load({a_.data + row * k_ * sizeOf(a_.dtype), a_.dtype, 1}, rows * k_, dtype_,
                        left.data());
    std::vector<T> acc(static_cast<size_t>(rows * kColumns));
    T right[kColumns];
    for (int64_t column = 0; column < n_; column += kColumns) {
      const int64_t columns = std::min(kColumns, n_ - column);
      std::fill(acc.begin(), acc.end(), T{0});
      for (int64_t k = 0; k < k_; ++k) {
        const int64_t from = k * b_.row_stride + column * b_.column_stride;
        Arithmetic<T>::load({b_.data + from * sizeOf(b_.dtype), b_.dtype, b_.column_stride},
                            columns, dtype_, right);
        for (int64_t r = 0; r < rows; ++r) {
          const T factor = left[static_cast<size_t>(r * k_ + k)];
          T* to = acc.data() + r * kColumns;
          for (int64_t j = 0; j < columns; ++j) {
            to[j] = Arithmetic<T>::multiplyAdd(to[j], factor, right[j]);
          }
        }
      }
      finish(acc.data(), rows, column, columns);
      for (int64_t r = 0; r < rows; ++r) {
        storeElements(acc.data() + r * kColumns, columns, dtype_,
                      out_ + ((row + r) * n_ + column) * element_);
      }
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
  // Walk over the leading axes alone. Each combination of their indices is one matrix product.
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
      inParallel(m, 16, [&](int64_t begin, int64_t end) { product.rows(begin, end); });
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
      return gather(context, expr, values[0], HostTensor(dtype, std::move(sizes)));
    case OpKind::Reduction: {
      HostTensor out(dtype, std::move(sizes));
      return computesInts(dtype) ? reduce<int64_t>(context, expr, values[0], std::move(out))
                                 : reduce<double>(context, expr, values[0], std::move(out));
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
  HEDDLE_CHECK(false, "{} is a leaf", expr.op->name);
}

}  // namespace heddle
