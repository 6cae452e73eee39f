// Compares reshapeInMemory() with addresses: a reshape is a view if the address of an element is a
// linear function of its indices in the result.
#include "ir/analysis/reshape_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace heddle::reshape_order_test {
namespace {

TensorView tensorOf(const std::vector<int64_t>& sizes) {
  TensorView tensor;
  for (int64_t size : sizes) tensor.domain.push_back({Size(size), IterKind::Iteration});
  return tensor;
}

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}

std::vector<int64_t> indicesOf(int64_t flat, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> indices(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    indices[i] = flat % sizes[i];
    flat /= sizes[i];
  }
  return indices;
}

int64_t dot(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  int64_t sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<int64_t> stridesIn(const AxisOrder& order, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[static_cast<size_t>(order[i])] = stride;
    stride *= sizes[static_cast<size_t>(order[i])];
  }
  return strides;
}

// Returns the strides of the result, or nullopt if the reshape is no view.
std::optional<std::vector<int64_t>> viewStrides(const std::vector<int64_t>& in,
                                                const std::vector<int64_t>& out,
                                                const std::vector<int64_t>& in_strides) {
  std::vector<int64_t> strides(out.size(), 0);
  int64_t step = 1;
  for (size_t i = out.size(); i-- > 0;) {
    if (out[i] > 1) strides[i] = dot(indicesOf(step, in), in_strides);
    step *= out[i];
  }
  for (int64_t flat = 0; flat < product(in); ++flat) {
    if (dot(indicesOf(flat, out), strides) != dot(indicesOf(flat, in), in_strides)) return {};
  }
  return strides;
}

void check(const std::vector<int64_t>& in, const std::vector<int64_t>& out,
           const AxisOrder& order) {
  const std::vector<int64_t> in_strides = stridesIn(order, in);
  const auto expected = viewStrides(in, out, in_strides);
  const auto groups = reshapeInMemory(tensorOf(in), tensorOf(out), order);
  const std::string what = str(in) + " in order " + str(order) + " to " + str(out);
  ASSERT_EQ(groups.has_value(), expected.has_value()) << what;
  if (!groups) return;
  const std::vector<int64_t> strides = stridesIn(orderOfGroups(*groups), out);
  for (size_t axis = 0; axis < out.size(); ++axis) {
    if (out[axis] == 1) continue;
    EXPECT_EQ(strides[axis], (*expected)[axis]) << what << ", axis " << axis;
  }
}

TEST(ReshapeOrder, RandomReshapesAreViewsExactlyIfAddressesAreLinear) {
  std::mt19937_64 random(1);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const std::vector<int64_t> factors = {1, 2, 2, 3};
  for (int i = 0; i < 5000; ++i) {
    // Both shapes are products of neighbours in one list of factors.
    std::vector<int64_t> parts(1 + below(5));
    for (int64_t& part : parts) part = factors[below(factors.size())];
    const auto merged = [&] {
      std::vector<int64_t> sizes = {parts[0]};
      for (size_t k = 1; k < parts.size(); ++k) {
        if (below(2) == 0) {
          sizes.back() *= parts[k];
        } else {
          sizes.push_back(parts[k]);
        }
      }
      return sizes;
    };
    const std::vector<int64_t> in = merged();
    AxisOrder order = rowMajor(in.size());
    for (size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[below(k)]);
    check(in, merged(), order);
  }
}

TEST(ReshapeOrder, ChannelsLastImagesKeepTheirChannels) {
  const Size n = Size::symbol("n");
  const Size c = Size::symbol("c");
  const Size h = Size::symbol("h");
  const Size w = Size::symbol("w");
  TensorView in;
  for (const Size& size : {n, c, h, w}) in.domain.push_back({size, IterKind::Iteration});
  TensorView out;
  for (const Size& size : {n, c, h * w}) out.domain.push_back({size, IterKind::Iteration});
  const auto groups = reshapeInMemory(in, out, {0, 2, 3, 1});
  ASSERT_TRUE(groups.has_value());
  EXPECT_EQ(orderOfGroups(*groups), (AxisOrder{0, 2, 1}));
  EXPECT_FALSE(reshapeInMemory(in, out, {0, 3, 2, 1}).has_value());
}

}  // namespace
}  // namespace heddle::reshape_order_test
