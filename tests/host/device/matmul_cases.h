#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "host/device/device.h"
#include "ir/types/tensor.h"

// Computes matrix products on any device, and compares the results with plain loops in double.
namespace heddle::host {

// A tensor in host memory with any strides, and its values in double.
struct Matrix {
  TensorDesc desc;
  std::vector<std::byte> bytes;

  Matrix(DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides) {
    desc = denseDesc(dtype, std::move(sizes));
    if (!strides.empty()) desc.strides = std::move(strides);
    bytes.assign(static_cast<size_t>(span() * sizeOf(dtype)), std::byte{0xFF});
  }
  int64_t span() const {
    int64_t last = 0;
    for (size_t i = 0; i < desc.rank(); ++i) last += (desc.sizes[i] - 1) * desc.strides[i];
    return std::max<int64_t>(last + 1, 1);
  }
  int64_t place(const std::vector<int64_t>& index) const {
    int64_t place = 0;
    for (size_t i = 0; i < index.size(); ++i) place += index[i] * desc.strides[i];
    return place;
  }
  double atPlace(int64_t place) const {
    return toDouble(loadElement(bytes.data(), desc.dtype, place));
  }
  double at(const std::vector<int64_t>& index) const { return atPlace(place(index)); }
};

inline bool nextIndex(std::vector<int64_t>& index, const std::vector<int64_t>& sizes) {
  for (size_t i = index.size(); i-- > 0;) {
    if (++index[i] < sizes[i]) return true;
    index[i] = 0;
  }
  return false;
}

// Fills with small integers, which every dtype computes without rounding.
inline void fillRandom(Matrix& matrix, std::mt19937& random) {
  std::vector<int64_t> index(matrix.desc.rank(), 0);
  if (matrix.desc.numel() == 0) return;
  do {
    const int64_t value = static_cast<int64_t>(random() % 5) - 2;
    storeElement(matrix.bytes.data(), matrix.desc.dtype, matrix.place(index),
                 matrix.desc.dtype == DType::Bool ? Scalar(value > 0) : Scalar(value));
  } while (nextIndex(index, matrix.desc.sizes));
}

// Returns the index in memory of an element of an operand, for an index of the result. Batch axes
// are aligned at the right, and the index along an axis of extent 1 is always 0.
inline int64_t operandPlace(const Matrix& x, const std::vector<int64_t>& c_index, int64_t row,
                            int64_t column) {
  const size_t rank = x.desc.rank();
  int64_t place = row * x.desc.strides[rank - 2] + column * x.desc.strides[rank - 1];
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (x.desc.sizes[i] != 1) place += c_index[c_index.size() - rank + i] * x.desc.strides[i];
  }
  return place;
}

inline void checkMatmul(const Matrix& a, const Matrix& b, const Matrix& c) {
  const int64_t k = a.desc.sizes.back();
  std::vector<int64_t> index(c.desc.rank(), 0);
  if (c.desc.numel() == 0) return;
  do {
    double sum = 0;
    for (int64_t p = 0; p < k; ++p) {
      sum += a.atPlace(operandPlace(a, index, index[index.size() - 2], p)) *
             b.atPlace(operandPlace(b, index, p, index.back()));
    }
    if (c.desc.dtype == DType::Bool) sum = sum != 0 ? 1 : 0;
    ASSERT_EQ(c.at(index), toDouble(roundTo(c.desc.dtype, sum))) << str(index);
  } while (nextIndex(index, c.desc.sizes));
}

// Runs one matrix product on operands in device memory and waits for it.
inline void runMatmul(Device& device, const MatmulSpec& spec, MatmulOperands operands,
                      Stream stream, const AlgorithmChoices& choices = {}) {
  const auto prepared = device.prepareMatmul(spec, choices);
  const int64_t bytes = prepared->workspaceBytes();
  if (bytes > 0) operands.workspace = device.allocator().allocate(bytes, stream);
  ErrorSink errors;
  prepared->run(operands, stream, {&errors, 0});
  if (bytes > 0) device.allocator().deallocate(operands.workspace, bytes, stream);
  Event event = device.createEvent();
  device.recordEvent(event, stream);
  device.synchronize(event);
  device.destroyEvent(event);
  errors.rethrow();
}

inline MatmulSpec specOf(const Matrix& a, const Matrix& b, const Matrix& c) {
  MatmulSpec spec;
  spec.a = a.desc;
  spec.b = b.desc;
  spec.c = c.desc;
  return spec;
}

struct MatmulCase {
  std::string what;
  std::vector<int64_t> a, b, c;                          // sizes
  std::vector<int64_t> a_strides, b_strides, c_strides;  // empty means dense
};

inline std::vector<MatmulCase> matmulCases() {
  std::vector<MatmulCase> cases;
  constexpr int64_t m = 7, n = 5, k = 9;
  for (int mix = 0; mix < 8; ++mix) {
    const auto strides = [&](int bit, std::vector<int64_t> yes, std::vector<int64_t> no) {
      return (mix & bit) != 0 ? std::move(yes) : std::move(no);
    };
    cases.push_back({"transposes " + std::to_string(mix),
                     {m, k},
                     {k, n},
                     {m, n},
                     strides(1, {1, m + 2}, {}),
                     strides(2, {1, k}, {n + 3, 1}),
                     strides(4, {1, m}, {})});
  }
  const auto add = [&](std::string what, std::vector<int64_t> a, std::vector<int64_t> b,
                       std::vector<int64_t> c) {
    cases.push_back({std::move(what), a, b, c, {}, {}, {}});
  };
  cases.push_back({"strides no library reads", {4, 6}, {6, 3}, {4, 3}, {14, 2}, {0, 1}, {9, 3}});
  cases.push_back(
      {"packed batches", {2, 4, 6}, {2, 6, 3}, {2, 4, 3}, {60, 14, 2}, {0, 6, 2}, {40, 9, 3}});
  cases.push_back(
      {"batch inside the rows", {3, 4, 5}, {3, 5, 2}, {3, 4, 2}, {5, 15, 1}, {}, {2, 6, 1}});
  add("linear: one product", {2, 3, 4, 5}, {5, 6}, {2, 3, 4, 6});
  add("a product a batch", {3, 4, 5}, {3, 5, 6}, {3, 4, 6});
  add("stretched both ways", {2, 1, 4, 5}, {3, 5, 6}, {2, 3, 4, 6});
  add("a without batch", {4, 5}, {2, 5, 6}, {2, 4, 6});
  add("dot products", {2, 3, 1, 5}, {2, 3, 5, 1}, {2, 3, 1, 1});
  add("no rows", {0, 2}, {2, 3}, {0, 3});
  add("no columns", {3, 2}, {2, 0}, {3, 0});
  add("no terms", {3, 0}, {0, 4}, {3, 4});
  add("no batches", {0, 3, 2}, {0, 2, 4}, {0, 3, 4});
  add("one element", {1, 1}, {1, 1}, {1, 1});
  add("larger", {2, 65, 130}, {2, 130, 67}, {2, 65, 67});
  cases.push_back({"no terms, strided result", {3, 0}, {0, 4}, {3, 4}, {}, {}, {9, 2}});
  return cases;
}

}  // namespace heddle::host
