// Compares reshapeInMemory() and layoutOfGroups() with addresses: a reshape is a view if the
// address of an element is a linear function of its indices in the result.
#include "ir/analysis/reshape_order.h"

#include <fmt/format.h>
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

// Returns the strides of a tensor with this layout. An axis that is not contiguous has a stride one
// element larger than a contiguous axis would have.
std::vector<int64_t> stridesIn(const Layout::Observed& layout, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = layout.order.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(layout.order[i]);
    if (!layout.contiguous[axis]) ++stride;
    strides[axis] = stride;
    stride *= sizes[axis];
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

// Requires that `of_result` has the strides `expected`, except along axes of one element. A gap may
// have another size than stridesIn() gives it.
void checkLayout(const Layout::Observed& of_result, const std::vector<int64_t>& sizes,
                 const std::vector<int64_t>& expected, const std::string& what) {
  int64_t stride = 1;
  for (size_t i = of_result.order.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(of_result.order[i]);
    if (sizes[axis] == 1) continue;
    EXPECT_EQ(of_result.contiguous[axis], expected[axis] == stride) << what << ", axis " << axis;
    EXPECT_GE(expected[axis], stride) << what << ", axis " << axis;
    stride = expected[axis] * sizes[axis];
  }
}

void check(const std::vector<int64_t>& in, const std::vector<int64_t>& out,
           const Layout::Observed& layout) {
  const std::vector<int64_t> in_strides = stridesIn(layout, in);
  const auto expected = viewStrides(in, out, in_strides);
  const auto groups = reshapeInMemory(tensorOf(in), tensorOf(out), layout);
  const std::string what = fmt::format("{} in order {} with strides {} to {}", str(in),
                                       str(layout.order), str(in_strides), str(out));
  ASSERT_EQ(groups.has_value(), expected.has_value()) << what;
  if (!groups) return;
  checkLayout(layoutOfGroups(*groups, layout, tensorOf(in), tensorOf(out)), out, *expected, what);
}

TEST(ReshapeOrder, RandomReshapesAreViewsExactlyIfAddressesAreLinear) {
  std::mt19937_64 random(1);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const std::vector<int64_t> factors = {1, 2, 2, 3};
  for (int i = 0; i < 5000; ++i) {
    // The axes of both shapes are products of neighbouring factors in one list.
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
    Layout::Observed layout{order, std::vector<bool>(in.size(), true)};
    for (size_t axis = 0; axis < in.size(); ++axis) {
      if (in[axis] > 1 && below(4) == 0) layout.contiguous[axis] = false;
    }
    check(in, merged(), layout);
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
  const auto groupsIn = [&](AxisOrder order) {
    return reshapeInMemory(in, out, {std::move(order), {true, true, true, true}});
  };
  const auto groups = groupsIn({0, 2, 3, 1});
  ASSERT_TRUE(groups.has_value());
  const Layout::Observed layout{{0, 2, 3, 1}, {true, true, true, true}};
  EXPECT_EQ(layoutOfGroups(*groups, layout, in, out).order, (AxisOrder{0, 2, 1}));
  EXPECT_FALSE(groupsIn({0, 3, 2, 1}).has_value());
}

TEST(ReshapeOrder, AxesThatCannotBeComparedAreOneGroup) {
  const Size c = Size::symbol("c");
  const auto tensor = [](const std::vector<Size>& sizes) {
    TensorView result;
    for (const Size& size : sizes) result.domain.push_back({size, IterKind::Iteration});
    return result;
  };
  // The extents n and h are equal on both sides. Only the axis c differs: it becomes two axes.
  const Size n = Size::symbol("n");
  const Size h = Size::symbol("h");
  const auto groups = reshapeGroups(tensor({n, c, h}), tensor({n, 2, Size::floorDiv(c, 2), h}));
  EXPECT_EQ(groups, (std::vector<ReshapeGroup>{{0, 1, 0, 1}, {1, 2, 1, 3}, {2, 3, 3, 4}}));
  // An axis of one element belongs to a neighbour.
  const auto units = reshapeGroups(tensor({n, h}), tensor({n, 1, h, 1}));
  EXPECT_EQ(units, (std::vector<ReshapeGroup>{{0, 1, 0, 1}, {1, 2, 1, 4}}));
}

}  // namespace
}  // namespace heddle::reshape_order_test
