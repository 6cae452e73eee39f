// Random fusions in which permutes, slices, flips, pads and cats lie between the ops of kernels.
// The passes movePermutes and movePicks (ir/passes/views) change many of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>

#include "tests/host/random/random_fusions.h"
#include "tests/host/random/random_reference.h"
#include "tests/sanitized.h"

namespace heddle::host::random_views_cpu_test {
namespace {

constexpr auto kSeeds = heddle::testing::casesOf<uint64_t>(60, 8);

// Writes a fusion of f32 tensors of three axes.
class FusionWriter {
 public:
  explicit FusionWriter(uint64_t seed) : random_(seed) {}

  std::string write() {
    for (int axis = 0; axis < 3; ++axis) sizes_.push_back(1 + below(5));
    text_ = fmt::format("heddle 1\nfusion random(%x: f32[{}], %y: f32[{}]) {{\n",
                        fmt::join(sizes_, ", "), fmt::join(stretchable(), ", "));
    // The first op makes sure that a kernel computes the first operand.
    add("tanh(%{0})");
    const std::string joined = last_;
    if (below(2) == 0) line(fmt::format("add(%{}, %y)", joined));
    const auto steps = 4 + below(6);
    for (int64_t i = 0; i < steps; ++i) step();
    const std::string also = below(4) == 0 ? ", %" + joined : "";
    return text_ + fmt::format("  return %{}{}\n}}\n", last_, also);
  }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  size_t anyAxis() { return static_cast<size_t>(below(static_cast<int64_t>(sizes_.size()))); }

  // Returns the sizes, some of them replaced by 1.
  std::vector<int64_t> stretchable() {
    std::vector<int64_t> sizes = sizes_;
    for (int64_t& size : sizes) size = below(3) == 0 ? 1 : size;
    return sizes;
  }

  void line(const std::string& expression) {
    last_ = fmt::format("t{}", count_++);
    text_ += fmt::format("  %{} = {}\n", last_, expression);
  }
  void add(const char* expression) { line(fmt::format(fmt::runtime(expression), last_)); }

  void step() {
    switch (below(9)) {
      case 0:
        return permute();
      case 1:
        return pad();
      case 7:
        return cat();
      case 2:
        return slice();
      case 3:
        return line(fmt::format("flip(%{}, axes=[{}])", last_, anyAxis()));
      case 4:
        return add(below(2) == 0 ? "mul(%{0}, 0.5)" : "relu(%{0})");
      case 5:
        return add("sin(%{0})");
      default:
        return subtractReduced();
    }
  }

  void permute() {
    std::vector<int64_t> axes(sizes_.size());
    std::iota(axes.begin(), axes.end(), 0);
    std::shuffle(axes.begin(), axes.end(), random_);
    std::vector<int64_t> sizes;
    for (int64_t axis : axes) sizes.push_back(sizes_[static_cast<size_t>(axis)]);
    sizes_ = sizes;
    line(fmt::format("permute(%{}, axes=[{}])", last_, fmt::join(axes, ", ")));
  }

  void pad() {
    std::vector<int64_t> lows, highs;
    for (int64_t& size : sizes_) {
      const int64_t low = below(3) == 0 ? below(4) - 1 : 0;
      const int64_t high = below(3) == 0 ? below(4) - 1 : 0;
      const bool is_empty = size + low + high < 1;
      lows.push_back(is_empty ? 0 : low);
      highs.push_back(is_empty ? 0 : high);
      size += lows.back() + highs.back();
    }
    line(fmt::format("pad(%{}, 0.5, lows=[{}], highs=[{}])", last_, fmt::join(lows, ", "),
                     fmt::join(highs, ", ")));
  }

  // Joins two values that are computed from the last value. The second one is shorter.
  void cat() {
    constexpr int64_t kLongest = 12;
    const size_t axis = anyAxis();
    const int64_t whole = sizes_[axis];
    if (2 * whole > kLongest) return add("neg(%{0})");
    const std::string from = last_;
    const int64_t stop = 1 + below(whole);
    line(fmt::format("slice_axis(%{}, axis={}, start=0, stop={})", from, axis, stop));
    add(below(2) == 0 ? "neg(%{0})" : "sin(%{0})");
    const std::string second = last_;
    if (below(2) == 0) line(fmt::format("relu(%{})", from));
    const std::string first = below(3) == 0 ? from : last_;
    const bool is_short = first == second;
    line(fmt::format("cat(%{}, %{}, axis={})", first, second, axis));
    sizes_[axis] = (is_short ? stop : whole) + stop;
  }

  // Adds a slice. Sometimes adds a second one that has no element of the first.
  void slice() {
    const size_t axis = anyAxis();
    const int64_t whole = sizes_[axis];
    const int64_t start = below(whole), stop = start + 1 + below(whole - start);
    const std::string from = last_;
    sizes_[axis] = stop - start;
    line(fmt::format("slice_axis(%{}, axis={}, start={}, stop={})", from, axis, start, stop));
    if (below(2) == 0 || stop + sizes_[axis] > whole) return;
    const std::string first = last_;
    line(fmt::format("slice_axis(%{}, axis={}, start={}, stop={})", from, axis, stop,
                     stop + sizes_[axis]));
    line(fmt::format("mul(%{}, %{})", first, last_));
  }

  // Subtracts a maximum or a mean along an axis from the last value.
  void subtractReduced() {
    const size_t axis = anyAxis();
    const std::string from = last_;
    if (below(2) == 0) {
      line(fmt::format("max(%{}, axes=[{}])", from, axis));
      line(fmt::format("broadcast(%{}, axes=[{}])", last_, axis));
    } else {
      line(fmt::format("sum(%{}, axes=[{}], keepdim=true)", from, axis));
      const std::string sum = last_;
      line(fmt::format("size(%{}, axis={})", from, axis));
      line(fmt::format("div(%{}, %{})", sum, last_));
    }
    line(fmt::format("sub(%{}, %{})", from, last_));
  }

  std::mt19937_64 random_;
  std::vector<int64_t> sizes_;  // of the last value
  std::string text_;
  std::string last_ = "x";
  int count_ = 0;
};

TEST(RandomViews, OneRankMatchesTheReference) {
  const testing::Seeds seeds = testing::seedsOf(1, kSeeds);
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    testing::expectReference(FusionWriter(seed).write(), seed, 1, DeviceKind::Cpu);
  }
}

TEST(RandomViews, SeveralRanksMatchTheReference) {
  const testing::Seeds seeds = testing::seedsOf(1, kSeeds / 8);
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    testing::expectReference(FusionWriter(seed).write(), seed, 2, DeviceKind::Cpu);
  }
}

}  // namespace
}  // namespace heddle::host::random_views_cpu_test
