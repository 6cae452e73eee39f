#include "host/device/cuda/matmul/matmul_layout.h"

#include <algorithm>

#include "ir/base/check.h"

namespace heddle::host {
namespace {

// Largest number of batches per call. Kernels may use the y or z axis of the grid for the batches,
// and CUDA limits these axes to this number.
constexpr int64_t kMostBatches = 65535;
constexpr int64_t kAlignment = 256;  // alignment of packed operands, in bytes
// cuBLASLt requires that f8 strides and alignments are multiples of this number of bytes.
constexpr int64_t kLayoutBytes = 16;
// Number of zero terms in each sum if k is 0. Every algorithm supports this number of terms.
constexpr int64_t kZeroTerms = 16;

int64_t lowestBit(int64_t value) { return value & -value; }

// Returns the packing of an operand, and sets the strides of `matrix` to those of the packed
// operand. The packed operand has dense columns if `columns_dense` is true, otherwise dense rows.
Packing packingOf(const MatmulShape::List& batch, MatmulShape::Matrix& matrix, int64_t rows,
                  int64_t columns, bool columns_dense, DType dtype) {
  Packing packing;
  packing.wanted = true;
  packing.element_bytes = sizeOf(dtype);
  for (size_t i = 0; i < batch.size(); ++i) {
    if (matrix.batch_strides[i] == 0) continue;
    packing.sizes.push_back(batch[i]);
    packing.strides.push_back(matrix.batch_strides[i]);
  }
  packing.sizes.insert(packing.sizes.end(), {rows, columns});
  packing.strides.insert(packing.strides.end(), {matrix.row_stride, matrix.column_stride});
  matrix.row_stride = columns_dense ? 1 : columns;
  matrix.column_stride = columns_dense ? rows : 1;
  packing.packed_strides.assign(packing.sizes.size(), 0);
  int64_t elements = rows * columns;
  for (size_t i = packing.sizes.size() - 2; i-- > 0;) {
    packing.packed_strides[i] = elements;
    elements *= packing.sizes[i];
  }
  packing.packed_strides[packing.sizes.size() - 2] = matrix.row_stride;
  packing.packed_strides.back() = matrix.column_stride;
  size_t next = 0;
  for (int64_t& stride : matrix.batch_strides) {
    if (stride != 0) stride = packing.packed_strides[next++];
  }
  packing.bytes = (elements * packing.element_bytes + kAlignment - 1) / kAlignment * kAlignment;
  return packing;
}

class Layouting {
 public:
  explicit Layouting(const MatmulSpec& spec)
      : shape_(matmulShape(spec)), alignment_(spec.alignment) {
    problem_.tf32 = spec.tf32;
    problem_.activation = spec.activation;
    problem_.spare_sms = spec.spare_sms;
  }

  // The order of the steps matters: packing changes strides and alignments, which later steps read.
  MatmulLayout run() {
    const MatrixLayout c = layoutOf(shape_.m, shape_.n, shape_.c);
    if (c.fits && c.transposed && !shape_.has_bias) {
      shape_ = transposed(shape_);
      std::swap(alignment_.a, alignment_.b);
      layout_.swapped = true;
    }
    if (shape_.k == 0) useZeros();
    pack();
    setWorkspaceOffsets();
    setSides();
    split();
    return std::move(layout_);
  }

 private:
  void useZeros() {
    layout_.zeros = true;
    shape_.k = kZeroTerms;
    for (MatmulShape::Matrix* x : {&shape_.a, &shape_.b}) {
      std::fill(x->batch_strides.begin(), x->batch_strides.end(), 0);
    }
  }

  bool isFloat8Product() const { return isFloat8(shape_.a_dtype); }

  // Returns whether an operand meets the conditions that cuBLASLt has only for f8 matrix products:
  // - its rows are dense; if `transposed` is true, its columns are dense instead;
  // - its alignment, MatrixLayout::ld and batch strides are multiples of 16 bytes.
  // Returns true for all other matrix products.
  bool inVectors(const MatrixLayout& layout, bool transposed, const MatmulShape::Matrix& matrix,
                 int64_t alignment, DType dtype) const {
    if (!isFloat8Product()) return true;
    const auto fits = [&](int64_t stride) { return stride * sizeOf(dtype) % kLayoutBytes == 0; };
    return layout.transposed == transposed && fits(layout.ld) && alignment >= kLayoutBytes &&
           std::all_of(matrix.batch_strides.begin(), matrix.batch_strides.end(), fits);
  }

  void pack() {
    const MatrixLayout a = layoutOf(shape_.m, shape_.k, shape_.a);
    const MatrixLayout b = layoutOf(shape_.k, shape_.n, shape_.b);
    const MatrixLayout c = layoutOf(shape_.m, shape_.n, shape_.c);
    if (!a.fits || layout_.zeros || !inVectors(a, false, shape_.a, alignment_.a, shape_.a_dtype)) {
      layout_.a = packingOf(shape_.batch, shape_.a, shape_.m, shape_.k, false, shape_.a_dtype);
      alignment_.a = kAlignment;
    }
    if (!b.fits || layout_.zeros || !inVectors(b, true, shape_.b, alignment_.b, shape_.b_dtype)) {
      layout_.b =
          packingOf(shape_.batch, shape_.b, shape_.k, shape_.n, isFloat8Product(), shape_.b_dtype);
      alignment_.b = kAlignment;
    }
    if (!c.fits || c.transposed || !inVectors(c, false, shape_.c, alignment_.c, shape_.c_dtype)) {
      layout_.c = packingOf(shape_.batch, shape_.c, shape_.m, shape_.n, false, shape_.c_dtype);
      alignment_.c = kAlignment;
    }
    if (!shape_.has_bias) return;
    problem_.bias_alignment = alignment_.bias;
    if (shape_.bias_stride == 1 || shape_.n == 1) return;
    MatmulShape::Matrix bias{0, shape_.bias_stride, {}};
    layout_.bias = packingOf({}, bias, 1, shape_.n, false, shape_.c_dtype);
    problem_.bias_alignment = kAlignment;
  }

  void setWorkspaceOffsets() {
    for (Packing* packing : {&layout_.a, &layout_.b, &layout_.c, &layout_.bias}) {
      packing->workspace = layout_.packed_bytes;
      layout_.packed_bytes += packing->bytes;
    }
  }

  // Describes an operand, with its packed strides if it is packed.
  static MatmulProblem::Side sideOf(int64_t rows, int64_t columns,
                                    const MatmulShape::Matrix& matrix, DType dtype) {
    const MatrixLayout layout = layoutOf(rows, columns, matrix);
    HEDDLE_CHECK(layout.fits, "an operand with strides that no library supports was not packed");
    return {dtype, layout.transposed, layout.ld, 0, kAlignment};
  }

  void setSides() {
    problem_.m = shape_.m;
    problem_.n = shape_.n;
    problem_.k = shape_.k;
    problem_.a = sideOf(shape_.m, shape_.k, shape_.a, shape_.a_dtype);
    problem_.b = sideOf(shape_.k, shape_.n, shape_.b, shape_.b_dtype);
    problem_.c = sideOf(shape_.m, shape_.n, shape_.c, shape_.c_dtype);
  }

  // Returns the batch axis whose batches a single call of cublasLtMatmul computes: the longest axis
  // along which the matrices of c do not interleave in memory. If they interleave, some algorithms
  // fail when they run. Returns -1 if there is no such axis.
  std::ptrdiff_t callAxis() const {
    const int64_t span = (shape_.m - 1) * problem_.c.ld + shape_.n;
    std::ptrdiff_t best = -1;
    for (size_t i = 0; i < shape_.batch.size(); ++i) {
      if (shape_.c.batch_strides[i] < span) continue;
      const auto axis = static_cast<std::ptrdiff_t>(i);
      if (best < 0 || shape_.batch[i] > shape_.batch[best]) best = axis;
    }
    return best;
  }

  // Splits the matrix product into calls. The batches of a call are consecutive indices of the axis
  // callAxis(), at most kMostBatches of them. Each combination of indices of the other batch axes
  // needs separate calls. If callAxis() returns -1, each call computes one batch.
  void split() {
    int64_t inner = 1;
    if (const std::ptrdiff_t axis = callAxis(); axis >= 0) {
      inner = shape_.batch[axis];
      shape_.batch.erase(shape_.batch.begin() + axis);
      const auto take = [&](MatmulShape::Matrix& matrix) {
        const int64_t stride = matrix.batch_strides[axis];
        matrix.batch_strides.erase(matrix.batch_strides.begin() + axis);
        return stride;
      };
      problem_.a.batch_stride = take(shape_.a);
      problem_.b.batch_stride = take(shape_.b);
      problem_.c.batch_stride = take(shape_.c);
    }
    BatchOffsets offsets(shape_);
    const int64_t rounds = shape_.batches();
    for (int64_t round = 0; round < rounds; ++round, offsets.next()) {
      for (int64_t begin = 0; begin < inner; begin += kMostBatches) {
        addCall(offsets, begin, std::min(kMostBatches, inner - begin));
      }
    }
    // The alignments are set last, because each addCall() may reduce them: they are those of the
    // least aligned call.
    for (MatmulProblem& problem : layout_.problems) {
      problem.a.alignment = alignment_.a;
      problem.b.alignment = alignment_.b;
      problem.c.alignment = alignment_.c;
    }
  }

  void addCall(const BatchOffsets& offsets, int64_t begin, int64_t count) {
    size_t index = 0;
    while (index < layout_.problems.size() && layout_.problems[index].batches != count) ++index;
    if (index == layout_.problems.size()) {
      layout_.problems.push_back(problem_);
      layout_.problems.back().batches = count;
    }
    const auto at = [&](int64_t offset, const MatmulProblem::Side& side, int64_t& alignment) {
      const int64_t bytes = (offset + begin * side.batch_stride) * sizeOf(side.dtype);
      alignment = lowestBit(alignment | bytes);
      return bytes;
    };
    MatmulLayout::Call call;
    call.a = at(offsets.a(), problem_.a, alignment_.a);
    call.b = at(offsets.b(), problem_.b, alignment_.b);
    call.c = at(offsets.c(), problem_.c, alignment_.c);
    call.problem = index;
    layout_.calls.push_back(call);
  }

  MatmulShape shape_;
  MatmulSpec::Alignment alignment_;
  MatmulProblem problem_;
  MatmulLayout layout_;
};

}  // namespace

MatmulLayout layoutMatmul(const MatmulSpec& spec) { return Layouting(spec).run(); }

}  // namespace heddle::host
