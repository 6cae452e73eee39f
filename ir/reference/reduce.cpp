#include "ir/reference/reduce.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "ir/base/check.h"
#include "ir/reference/parallel.h"
#include "ir/reference/walk.h"

namespace heddle {
namespace {

// Combines the elements of one result, one after another.
template <class T>
class Combination {
 public:
  Combination(const OpDef& op, DType dtype)
      : combine_(Arithmetic<T>::combine(op)),
        compensated_(std::is_same_v<T, double> && op.reduce_op == ReduceOp::Sum),
        acc_(Arithmetic<T>::identity(op, dtype)) {}

  void add(T value) {
    if (compensated_) {
      const T sum = acc_ + value;
      lost_ += std::abs(acc_) >= std::abs(value) ? (acc_ - sum) + value : (value - sum) + acc_;
      acc_ = sum;
      return;
    }
    const T pair[] = {acc_, value};
    acc_ = combine_(pair);
  }
  void add(const Combination& other) {
    add(other.acc_);
    lost_ += other.lost_;
  }
  // Ignores the compensation if the sum is not finite: the compensation may then be NaN or an
  // infinity, and adding it could turn an infinite sum into NaN.
  T result() const {
    if constexpr (std::is_same_v<T, double>) {
      if (compensated_ && std::isfinite(acc_)) return acc_ + lost_;
    }
    return acc_;
  }

 private:
  decltype(Arithmetic<T>::combine(std::declval<const OpDef&>())) combine_;
  bool compensated_;
  T acc_;
  T lost_ = 0;  // the compensation: the sum of all rounding errors so far
};

// If more elements than this are reduced to one result, they are first combined in parts of this
// length. The length is fixed, so that the bits of a result depend neither on the number of threads
// nor on which other results are computed.
constexpr int64_t kPart = int64_t{1} << 16;

template <class T>
class Reducer {
 public:
  Reducer(const ReferenceContext& context, const Expression& expr, const HostTensor& value,
          HostTensor& out)
      : expr_(expr), value_(value), out_(out), accesses_(accessesOf(context, expr)) {
    for (int64_t size : accesses_.inner_sizes) inner_ *= size;
    parts_ = std::max<int64_t>(1, (inner_ + kPart - 1) / kPart);
  }

  void run() {
    if (parts_ == 1) return runWhole();
    // Long reductions usually have few results. To use all threads, the parts of one result are
    // computed in parallel.
    const int64_t count = out_.numel();
    std::vector<Combination<T>> partial(count * parts_, identity());
    inParallel(count * parts_, 1, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t first = begin % count;
        const int64_t some = std::min(end - begin, count - first);
        combine(begin / count, first, some, partial.data() + begin);
        begin += some;
      }
    });
    std::vector<T> results;
    for (int64_t i = 0; i < count; ++i) {
      Combination<T> all = partial[i];
      for (int64_t part = 1; part < parts_; ++part) {
        all.add(partial[part * count + i]);
      }
      results.push_back(all.result());
    }
    storeElements(results.data(), count, out_.dtype, out_.data.get());
  }

 private:
  Combination<T> identity() const { return Combination<T>(*expr_.op, out_.dtype); }

  void runWhole() {
    const int64_t grain = std::max<int64_t>(kBlock / 8, kPart / std::max<int64_t>(1, inner_));
    inParallel(out_.numel(), grain, [&](int64_t begin, int64_t end) {
      T results[kBlock];
      for (int64_t first = begin; first < end; first += kBlock) {
        const int64_t count = std::min(kBlock, end - first);
        std::vector<Combination<T>> block(count, identity());
        combine(0, first, count, block.data());
        std::transform(block.begin(), block.end(), results,
                       [](const Combination<T>& each) { return each.result(); });
        storeElements(results, count, out_.dtype, out_.data.get() + first * sizeOf(out_.dtype));
      }
    });
  }

  // Combines the elements in part number `part` of each of `count` results, which begin with result
  // number `first`.
  void combine(int64_t part, int64_t first, int64_t count, Combination<T>* to) const {
    const Access& access = accesses_.operands[0];
    const Walk results(out_.sizes, {{access.offset, access.strides, {}}});
    const Walk elements(accesses_.inner_sizes, {{0, access.inner_strides, {}}});
    const int64_t from = part * kPart;
    const int64_t stop = std::min(from + kPart, inner_);
    // Reads along the results or along the reduced elements, whichever have the smaller stride.
    // Exception: if the stride of the results is 0, reads along the reduced elements.
    const bool along_results = results.stride(0) != 0 && results.stride(0) < elements.stride(0);
    results.run(
        first, first + count, [&](int64_t at, int64_t run, const std::vector<int64_t>& places) {
          Combination<T>* into = to + (at - first);
          elements.run(
              from, stop, [&](int64_t, int64_t length, const std::vector<int64_t>& offsets) {
                const int64_t place = places[0] + offsets[0];
                if (along_results) {
                  addRuns(place, run, results.stride(0), length, elements.stride(0), into);
                } else {
                  addLines(place, run, results.stride(0), length, elements.stride(0), into);
                }
              });
        });
  }

  void addRuns(int64_t place, int64_t run, int64_t result_stride, int64_t length, int64_t stride,
               Combination<T>* into) const {
    T block[kBlock];
    for (int64_t i = 0; i < length; ++i) {
      load(place + i * stride, run, result_stride, block);
      for (int64_t r = 0; r < run; ++r) into[r].add(block[r]);
    }
  }

  void addLines(int64_t place, int64_t run, int64_t result_stride, int64_t length, int64_t stride,
                Combination<T>* into) const {
    T block[kBlock];
    for (int64_t r = 0; r < run; ++r) {
      load(place + r * result_stride, length, stride, block);
      for (int64_t i = 0; i < length; ++i) into[r].add(block[i]);
    }
  }

  void load(int64_t place, int64_t count, int64_t stride, T* block) const {
    Arithmetic<T>::load({value_.data.get() + place * sizeOf(value_.dtype), value_.dtype, stride},
                        count, out_.dtype, block);
  }

  const Expression& expr_;
  const HostTensor& value_;
  HostTensor& out_;
  Accesses accesses_;
  int64_t inner_ = 1;  // number of elements that are combined to one result
  int64_t parts_ = 1;
};

}  // namespace

HostTensor reduceElements(const ReferenceContext& context, const Expression& expr,
                          const HostTensor& value, HostTensor out) {
  HEDDLE_CHECK(expr.op->reduce_op.has_value(), "{} has no reduction", expr.op->name);
  if (out.numel() == 0) return out;
  if (computesInts(out.dtype)) {
    Reducer<int64_t>(context, expr, value, out).run();
  } else {
    Reducer<double>(context, expr, value, out).run();
  }
  return out;
}

}  // namespace heddle
