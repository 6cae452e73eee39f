#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/codegen/candidate_cases.h"

namespace heddle::codegen::testing {

// Creates random segments with random sizes, memory orders and dtypes. The extents are small, odd
// or powers of two, so that vectors and tiles are often incomplete. A seed decides everything, with
// the same standard library. The seeds 0 to kKinds - 1 give each kind of segment once.
class RandomCandidateCase {
 public:
  static constexpr unsigned kKinds = 12;

  explicit RandomCandidateCase(unsigned seed) : random_(seed), kind_(seed % kKinds) {}

  CandidateCase make() {
    chooseSizes();
    CandidateCase made;
    const std::string body = bodyOf(kind_);
    std::string inputs;
    for (int i = 0; i < inputs_; ++i) {
      inputs += fmt::format("{}%x{}: {}{}", i > 0 ? ", " : "", i, dtype_, symbols());
      made.sizes.push_back(sizes_);
      made.strides.push_back(below(3) > 0 ? std::vector<int64_t>{} : permutedStrides());
    }
    if (per_row_) {
      inputs += fmt::format(", %r: f32[{}]", fmt::join(rowSymbols(), ", "));
      made.sizes.push_back(rowSizes());
      made.strides.emplace_back();
    }
    made.text = fmt::format("({}) {{\n{}}}\n", inputs, body);
    for (size_t i = 0; i < sizes_.size(); ++i) made.symbols[fmt::format("n{}", i)] = sizes_[i];
    return made;
  }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  void chooseSizes() {
    static const char* const kTypes[] = {"f32", "bf16", "f16"};
    static constexpr int64_t kExtents[] = {1, 2, 3, 4, 5, 7, 8, 11, 16, 31, 32, 37, 49, 64, 100};
    constexpr int64_t kMost = 30000;
    dtype_ = kTypes[below(3)];
    const int64_t rank = 2 + below(3);
    for (int64_t i = 0; i < rank; ++i) sizes_.push_back(kExtents[below(15)]);
    // One long axis, in half of the cases.
    if (below(2) == 0) sizes_[static_cast<size_t>(below(rank))] *= 1 + below(200);
    int64_t elements =
        std::accumulate(sizes_.begin(), sizes_.end(), int64_t{1}, std::multiplies<>());
    while (elements > kMost) {
      int64_t& largest = *std::max_element(sizes_.begin(), sizes_.end());
      elements /= largest;
      largest = largest / 2 + 1;
      elements *= largest;
    }
    for (int64_t i = 0; i < rank; ++i) {
      if (below(2) == 0) axes_.push_back(i);
    }
    if (axes_.empty()) axes_.push_back(below(rank));
  }

  bool isReduced(size_t axis) const {
    return std::find(axes_.begin(), axes_.end(), static_cast<int64_t>(axis)) != axes_.end();
  }
  // The sizes of a tensor with one element per row.
  std::vector<int64_t> rowSizes() const {
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      if (!isReduced(i)) sizes.push_back(sizes_[i]);
    }
    return sizes;
  }
  std::vector<std::string> rowSymbols() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      if (!isReduced(i)) names.push_back(fmt::format("n{}", i));
    }
    return names;
  }

  std::string symbols() const {
    std::string text;
    for (size_t i = 0; i < sizes_.size(); ++i) text += fmt::format("{}n{}", i > 0 ? ", " : "", i);
    return "[" + text + "]";
  }

  std::vector<int64_t> permutedStrides() {
    std::vector<size_t> order(sizes_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), random_);
    std::vector<int64_t> strides(sizes_.size());
    int64_t stride = 1;
    for (const size_t axis : order) {
      strides[axis] = stride;
      stride *= sizes_[axis];
    }
    return strides;
  }

  // Returns the text of the ops and of the outputs of a segment. %f is an f32 value that is
  // computed from %x0 element by element.
  std::string bodyOf(int64_t kind) {
    const std::string axes = fmt::format("[{}]", fmt::join(axes_, ", "));
    int64_t count = 1;
    for (const int64_t axis : axes_) count *= sizes_[static_cast<size_t>(axis)];
    const std::string keep = fmt::format("axes={}, keepdim=true", axes);
    const std::string head =
        dtype_ == "f32" ? "  %f = mul(%x0, 0.5)\n" : "  %f = cast(%x0, dtype=f32)\n";
    const std::string tail = dtype_ == "f32" ? "  %y = mul(%r, 0.75)\n"
                                             : fmt::format("  %y = cast(%r, dtype={})\n", dtype_);
    const std::string centered = fmt::format(
        "  %s = sum(%f, {0})\n  %c = div(%s, {1}.0)\n  %d = sub(%f, %c)\n  %q = mul(%d, %d)\n"
        "  %v = sum(%q, {0})\n",
        keep, count);
    const std::string exponentials = fmt::format(
        "  %m = max(%f, {0})\n  %d = sub(%f, %m)\n  %p = exp(%d)\n  %s = sum(%p, {0})\n", keep);
    switch (kind) {
      case 0:  // pointwise, with inputs in different memory orders
        inputs_ = 2;
        return "  %y = sub(%x0, %x1)\n  %z = maximum(%x0, %y)\n  return %y, %z\n";
      case 1:  // two reductions of one input
        return head + fmt::format("  %s = sum(%f, axes={0})\n  %m = max(%f, axes={0})\n", axes) +
               "  return %s, %m\n";
      case 2:  // a mean and the squares around it
        return head + centered + "  return %c, %v\n";
      case 3:  // softmax along several axes
        return head + exponentials + "  %r = div(%p, %s)\n" + tail + "  return %y\n";
      case 4:  // the maximum and the sum of exponentials
        return head + exponentials + "  return %m, %s\n";
      case 5:  // pointwise, and reads elements at other indices
        return windowed();
      case 6:  // the gradients of a norm: one value per row, and one per column
        inputs_ = 2;
        return gradients();
      case 7: {  // one reduction over everything, and an output of all elements
        std::vector<int64_t> all(sizes_.size());
        std::iota(all.begin(), all.end(), int64_t{0});
        return head + fmt::format("  %s = sum(%f, axes=[{}])\n", fmt::join(all, ", ")) +
               "  %r = exp(%f)\n" + tail + "  return %y, %s\n";
      }
      case 9:  // two values per row, of which one depends on an input with one element per row
        per_row_ = true;
        return head + fmt::format(
                          "  %h = max(%f, {0})\n  %h1 = max(%f, axes={1})\n  %d = sub(%f, %h)\n"
                          "  %p = sin(%d)\n  %s = sum(%p, axes={1})\n  %t = add(%s, %r)\n"
                          "  return %h1, %t\n",
                          keep, axes);
      case 10:  // two outputs of all elements, of which one depends on the second input
        inputs_ = 2;
        return head +
               fmt::format("  %h = max(%f, {0})\n  %d = sub(%f, %h)\n  %r = tanh(%d)\n", keep) +
               tail +
               fmt::format(
                   "  %a = add(%x0, %x1)\n  %k = cast(%h, dtype={1})\n"
                   "  %z = mul(%x1, %k)\n  %q = sum(%a, axes={0})\n  return %y, %z, %q\n",
                   axes, dtype_);
      case 11:  // statistics with two values per row that depend on the same input per row
        per_row_ = true;
        return head + fmt::format(
                          "  %s = sum(%f, axes={0})\n  %c = div(%s, {1}.0)\n  %new = add(%c, %r)\n"
                          "  %b = broadcast(%c, axes={0})\n  %d = sub(%f, %b)\n  %q = mul(%d, %d)\n"
                          "  %v = sum(%q, axes={0})\n  %t = mul(%v, %r)\n  %w = add(%v, 1.0)\n"
                          "  %u = rsqrt(%w)\n  %g = broadcast(%u, axes={0})\n  %k = mul(%d, %g)\n"
                          "  %h = tanh(%r)\n  %o = add(%h, %new)\n"
                          "  return %new, %h, %t, %k, %o\n",
                          axes, count);
      default:  // a norm, with a second input in another memory order
        inputs_ = 2;
        return head + centered +
               "  %w = add(%v, 1.0)\n  %u = rsqrt(%w)\n  %k = mul(%d, %u)\n"
               "  %r = mul(%k, %x1)\n" +
               tail + "  return %y, %c\n";
    }
  }

  // Shifts %x0 along an axis with a pad, and adds %x0 in reverse order.
  std::string windowed() {
    const auto axis = static_cast<size_t>(axes_.front());
    const int64_t shift = below(5) - 2;
    std::vector<int64_t> lows(sizes_.size(), 0);
    lows[axis] = shift;
    std::vector<int64_t> highs(sizes_.size(), 0);
    highs[axis] = -shift;
    return fmt::format(
        "  %a = pad(%x0, 0.5, lows=[{}], highs=[{}])\n  %b = flip(%x0, axes=[{}])\n"
        "  %y = add(%a, %b)\n  return %y\n",
        fmt::join(lows, ", "), fmt::join(highs, ", "), axis);
  }

  // The rows lie along the last axes. The columns lie along the other axes.
  std::string gradients() {
    const int64_t rank = static_cast<int64_t>(sizes_.size());
    const int64_t split = 1 + below(rank - 1);
    std::vector<int64_t> outer, inner;
    for (int64_t i = 0; i < rank; ++i) (i < split ? outer : inner).push_back(i);
    const std::string cast = dtype_ == "f32" ? "mul({}, 0.5)" : "cast({}, dtype=f32)";
    return fmt::format("  %f = {}\n  %g = {}\n", fmt::format(fmt::runtime(cast), "%x0"),
                       fmt::format(fmt::runtime(cast), "%x1")) +
           fmt::format(
               "  %q = mul(%f, %g)\n  %s = sum(%q, axes=[{0}], keepdim=true)\n"
               "  %d = sub(%g, %s)\n  %c = sum(%q, axes=[{1}])\n  return %d, %c\n",
               fmt::join(inner, ", "), fmt::join(outer, ", "));
  }

  std::mt19937_64 random_;
  std::vector<int64_t> sizes_;
  std::vector<int64_t> axes_;  // the reduced axes
  std::string dtype_;
  int64_t kind_;
  int inputs_ = 1;
  bool per_row_ = false;  // there is also an input %r with one element per row
};

}  // namespace heddle::codegen::testing
