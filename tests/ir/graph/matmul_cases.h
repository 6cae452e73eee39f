#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "ir/base/check.h"
#include "ir/text/fusion_text.h"
#include "ir/types/host_tensor.h"

// Fusions of one matmul or linear, and their results computed by plain loops in double.
namespace heddle::testing {

struct MatmulOpCase {
  std::string op;          // matmul or linear
  std::vector<int64_t> a;  // sizes of a and b as the op reads them
  std::vector<int64_t> b;
  bool bias = false;
  std::string activation = "none";
  bool permuted = false;  // a and b are views that swap the last two axes of the inputs
};

inline std::vector<MatmulOpCase> matmulOpCases() {
  std::vector<MatmulOpCase> cases = {
      {"matmul", {5}, {5}, false, "none"},
      {"matmul", {5}, {5, 3}, false, "none"},
      {"matmul", {4, 5}, {5}, false, "relu"},
      {"matmul", {2, 3, 4, 5}, {5}, false, "none"},
      {"matmul", {5}, {2, 3, 5, 4}, false, "none"},
      {"matmul", {7, 9}, {9, 6}, false, "gelu_tanh", true},
      {"matmul", {2, 1, 7, 9}, {3, 9, 6}, false, "none"},
      {"matmul", {2, 1, 7, 9}, {1, 3, 9, 6}, false, "relu", true},
      {"matmul", {4, 8}, {3, 8, 5}, false, "none"},
      {"matmul", {3, 2, 4, 8}, {2, 8, 5}, false, "none", true},
      {"matmul", {3, 4, 8}, {8, 5}, false, "none"},
      {"matmul", {3, 0}, {0, 4}, false, "relu"},
      {"matmul", {0, 3}, {3, 4}, false, "none"},
      {"linear", {9}, {6, 9}, true, "relu"},
      {"linear", {3, 0}, {4, 0}, true, "relu"},
      {"linear", {514, 3}, {90, 3}, true, "gelu_tanh"},
      {"linear", {3, 600}, {515, 600}, true, "none"},
  };
  for (const char* activation : {"none", "relu", "gelu_tanh"}) {
    for (const bool bias : {false, true}) {
      cases.push_back({"linear", {2, 8, 16}, {24, 16}, bias, activation, bias});
    }
  }
  return cases;
}

inline std::string nameOf(const MatmulOpCase& c) {
  return fmt::format("{} {} {}{} {}{}", c.op, str(c.a), str(c.b), c.bias ? " bias" : "",
                     c.activation, c.permuted ? " permuted" : "");
}

inline std::vector<int64_t> swappedLast(std::vector<int64_t> sizes) {
  if (sizes.size() > 1) std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  return sizes;
}

inline int64_t columnsOf(const MatmulOpCase& c) {
  return c.op == "linear" ? c.b[0] : c.b.size() == 1 ? 1 : c.b.back();
}

inline Fusion fusionOf(const MatmulOpCase& c, DType dtype) {
  const auto type = [&](const std::vector<int64_t>& sizes) {
    return std::string(name(dtype)) + str(c.permuted ? swappedLast(sizes) : sizes);
  };
  const auto view = [&](const char* name, const std::vector<int64_t>& sizes) {
    if (!c.permuted) return std::string();
    std::vector<int64_t> axes;
    for (size_t i = 0; i < sizes.size(); ++i) axes.push_back(static_cast<int64_t>(i));
    return fmt::format("%{0} = permute(%{0}t, axes={1}) ", name, str(swappedLast(axes)));
  };
  const std::string t = c.permuted ? "t" : "";
  std::string text =
      fmt::format("heddle 1 fusion f(%a{}: {}, %b{}: {}", t, type(c.a), t, type(c.b));
  if (c.bias) text += fmt::format(", %c: {}[{}]", name(dtype), columnsOf(c));
  text += ") { " + view("a", c.a) + view("b", c.b);
  text += fmt::format("%y = {}(%a, %b{}{}) return %y }}", c.op, c.bias ? ", %c" : "",
                      c.activation == "none" ? "" : ", activation=" + c.activation);
  return parseFusion(text);
}

// Scales integers of narrow dtypes so that their sums overflow. The sums are still exact in double.
inline void spread(HostTensor& tensor) {
  const int64_t factor = tensor.dtype == DType::I32  ? 70001
                         : tensor.dtype == DType::I8 ? 13
                         : tensor.dtype == DType::U8 ? 17
                                                     : 1;
  if (factor == 1) return;
  for (int64_t i = 0; i < tensor.numel(); ++i) tensor.set(i, toInt(tensor.at(i)) * factor);
}

// Returns random inputs for the fusion. Their elements are in the memory order of the inputs.
inline std::vector<HostTensor> inputsOf(const Fusion& fusion) {
  std::vector<HostTensor> inputs;
  for (ValueId id : fusion.inputs()) {
    std::vector<int64_t> sizes;
    for (const Size& size : fusion.tensor(id).sizes()) sizes.push_back(size.constant());
    inputs.push_back(randomTensor(fusion.tensor(id).dtype, sizes, 3, fusion.value(id).name));
    spread(inputs.back());
  }
  return inputs;
}

class ExpectedMatmul {
 public:
  ExpectedMatmul(const MatmulOpCase& c, const std::vector<HostTensor>& inputs)
      : case_(c), inputs_(inputs) {
    a_ = c.a.size() == 1 ? std::vector<int64_t>{1, c.a[0]} : c.a;
    b_ = c.op == "linear"  ? std::vector<int64_t>{c.b[1], c.b[0]}
         : c.b.size() == 1 ? std::vector<int64_t>{c.b[0], 1}
                           : c.b;
    for (size_t i = std::max(a_.size(), b_.size()); i-- > 2;) {
      batch_.push_back(std::max(fromRight(a_, i), fromRight(b_, i)));
    }
    if (c.a.size() > 1) kept_.push_back(m());
    if (c.op == "linear" || c.b.size() > 1) kept_.push_back(n());
  }

  std::vector<int64_t> sizes() const {
    std::vector<int64_t> all = batch_;
    all.insert(all.end(), kept_.begin(), kept_.end());
    return all;
  }

  // Returns element `linear` (row-major) of the result before rounding. Sets `magnitude` to the sum
  // of the absolute values of the terms.
  double at(int64_t linear, double& magnitude) const {
    const int64_t column = linear % n();
    const int64_t row = linear / n() % m();
    const int64_t batch = linear / n() / m();
    double sum = 0;
    magnitude = 0;
    for (int64_t p = 0; p < a_.back(); ++p) {
      const double term = element(0, a_, batch, row, p) * element(1, b_, batch, p, column);
      sum += term;
      magnitude += std::fabs(term);
    }
    if (case_.bias) sum += toDouble(inputs_[2].at(column));
    magnitude += std::fabs(sum);
    sum = wrapped(sum);
    if (case_.activation == "relu") return std::max(sum, 0.0);
    if (case_.activation == "none") return sum;
    return 0.5 * sum *
           (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (sum + 0.044715 * std::pow(sum, 3))));
  }

 private:
  // Wraps the sum around if the dtype is an integer. This happens before the activation.
  double wrapped(double sum) const {
    const auto integer = [&] { return static_cast<int64_t>(sum); };
    switch (inputs_[0].dtype) {
      case DType::I8:
        return static_cast<int8_t>(integer());
      case DType::U8:
        return static_cast<uint8_t>(integer());
      case DType::I32:
        return static_cast<int32_t>(integer());
      default:
        return sum;
    }
  }

  static int64_t fromRight(const std::vector<int64_t>& sizes, size_t i) {
    return i < sizes.size() ? sizes[sizes.size() - 1 - i] : 1;
  }
  int64_t m() const { return fromRight(a_, 1); }
  int64_t n() const { return b_.back(); }

  double element(size_t input, const std::vector<int64_t>& sizes, int64_t batch, int64_t row,
                 int64_t column) const {
    int64_t place = 0;
    int64_t stride = 1;
    for (size_t i = 2; i < batch_.size() + 2; ++i) {
      const int64_t extent = batch_[batch_.size() + 1 - i];
      const int64_t mine = fromRight(sizes, i);
      if (mine != 1) place += batch % extent * stride;
      stride *= mine;
      batch /= extent;
    }
    const bool swapped = case_.permuted != (case_.op == "linear" && input == 1);
    const int64_t rows = fromRight(sizes, 1);
    const int64_t columns = fromRight(sizes, 0);
    place = place * rows * columns + (swapped ? column * rows + row : row * columns + column);
    return toDouble(inputs_[input].at(place));
  }

  const MatmulOpCase& case_;
  const std::vector<HostTensor>& inputs_;
  std::vector<int64_t> a_;
  std::vector<int64_t> b_;
  std::vector<int64_t> batch_;
  std::vector<int64_t> kept_;
};

// Compares the result with plain loops. The allowed error is the sum of:
// - half a unit in the last place of the result
// - `ulps` units of f32 (f64 for f64), relative to the sum of the absolute values of the terms
// - for gelu_tanh, `gelu_error` times the same sum
inline void expectMatmul(const MatmulOpCase& c, const std::vector<HostTensor>& inputs,
                         const HostTensor& got, double ulps, double gelu_error = 0) {
  const ExpectedMatmul expected(c, inputs);
  ASSERT_EQ(got.sizes, expected.sizes());
  const bool wide = got.dtype == DType::F64;
  const double unit = std::ldexp(1.0, wide ? -52 : -23);
  const double last = got.dtype == DType::BF16  ? std::ldexp(1.0, -8)
                      : got.dtype == DType::F16 ? std::ldexp(1.0, -11)
                                                : unit;
  const double extra = c.activation == "gelu_tanh" ? gelu_error : 0;
  for (int64_t i = 0; i < got.numel(); ++i) {
    double magnitude = 0;
    const double value = expected.at(i, magnitude);
    const double bound = isFloat(got.dtype) ? std::fabs(value) * last * 1.01 +
                                                  (ulps * unit + extra) * magnitude + 1e-37
                                            : 0;
    ASSERT_NEAR(toDouble(got.at(i)), value, bound) << i;
  }
}

}  // namespace heddle::testing
