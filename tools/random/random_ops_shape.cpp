// Ops that change shapes, and matrix products.
#include <algorithm>
#include <optional>

#include "tools/random/random_ops.h"

namespace heddle::random {

bool OpMaker::structural(const OpDef& op) {
  switch (op.kind) {
    case OpKind::Broadcast:
      return broadcast();
    case OpKind::Expand:
      return expand();
    case OpKind::Reshape:
      return reshape();
    case OpKind::Slice:
      return slice();
    case OpKind::Diagonal:
      return diagonal();
    case OpKind::SizeOf: {
      if (!choices_.oneIn(4)) return false;
      const ValueId x = tensor(true);
      b_.sizeOf(x, axisOf(x));
      return true;
    }
    case OpKind::Set:
      b_.set(tensor());
      return true;
    default: {
      const ValueId x = tensor(true);
      AxisOrder axes = rowMajor(rank(x));
      choices_.shuffle(axes);
      b_.permute(x, axes);
      return true;
    }
  }
}

bool OpMaker::diagonal() {
  const ValueId x = tensor(true);
  if (rank(x) < 2) return false;
  AxisOrder axes = rowMajor(rank(x));
  choices_.shuffle(axes);
  b_.diagonal(x, choices_.between(-2, 2), axes[0], axes[1]);
  return true;
}

bool OpMaker::broadcast() {
  const ValueId x = tensor();
  if (rank(x) > 3) return false;
  b_.broadcast(x, {choices_.between(0, static_cast<int64_t>(rank(x)))});
  return true;
}

// Adds an expand. If the value has no axis that can be stretched, a broadcast first adds such an
// axis.
bool OpMaker::expand() {
  ValueId x = tensor();
  std::vector<Size> sizes = b_.fusion().tensor(x).sizes();
  auto one =
      std::find_if(sizes.begin(), sizes.end(), [](const Size& s) { return s.isConstant(1); });
  if (one == sizes.end()) {
    if (sizes.size() > 3) return false;
    const int64_t axis = choices_.between(0, static_cast<int64_t>(sizes.size()));
    x = b_.broadcast(x, {axis});
    one = sizes.insert(sizes.begin() + axis, Size(1));
  }
  *one = choices_.pick(context_.extents);
  b_.expand(x, sizes);
  return true;
}

bool OpMaker::reshape() {
  const ValueId x = tensor();
  std::vector<Size> sizes = b_.fusion().tensor(x).sizes();
  if (sizes.size() >= 2 && choices_.oneIn(2)) {  // join two neighbouring axes
    const auto at = choices_.below(static_cast<int64_t>(sizes.size()) - 1);
    sizes[at] = sizes[at] * sizes[static_cast<size_t>(at) + 1];
    sizes.erase(sizes.begin() + at + 1);
  } else if (!sizes.empty() && choices_.oneIn(2)) {  // split an axis
    const size_t at = choices_.below(static_cast<int64_t>(sizes.size()));
    const int64_t n = number(sizes[at]);
    const int64_t part = choices_.pick<int64_t>({2, 3, 4, 5, 7});
    if (n == 0 || n % part != 0) return false;
    sizes[at] = Size(n / part);
    sizes.insert(sizes.begin() + static_cast<int64_t>(at) + 1, Size(part));
  } else if (sizes.size() >= 2 && choices_.oneIn(2)) {  // regroup the elements
    std::reverse(sizes.begin(), sizes.end());
  } else {
    sizes.insert(sizes.begin() + choices_.below(static_cast<int64_t>(sizes.size()) + 1), Size(1));
  }
  if (sizes.size() > 5) return false;
  b_.reshape(x, sizes);
  return true;
}

bool OpMaker::slice() {
  const ValueId x = tensor(true);
  std::vector<Size> stops = b_.fusion().tensor(x).sizes();
  std::vector<Size> starts(stops.size(), Size(0));
  std::vector<int64_t> steps(stops.size(), 1);
  for (int64_t cuts = choices_.between(1, 2); cuts > 0; --cuts) {
    const size_t axis = axisOf(x);
    const int64_t n = number(stops[axis]);
    const int64_t start = choices_.below(std::min<int64_t>(n, 4));
    if (choices_.oneIn(2) && n > start) stops[axis] = Size(choices_.between(start + 1, n));
    if (choices_.oneIn(20)) stops[axis] = Size(start);  // an empty slice
    starts[axis] = Size(start);
    if (choices_.oneIn(3)) steps[axis] = choices_.between(1, 3);
  }
  b_.slice(x, starts, stops, choices_.oneIn(2) ? steps : std::vector<int64_t>{});
  return true;
}

bool OpMaker::matmul() {
  if (choices_.oneIn(3)) return linear();
  for (int tries = 40; tries > 0; --tries) {
    const ValueId x = tensor(true);
    ValueId y = tensor(true);
    const TensorView& a = b_.fusion().tensor(x);
    const TensorView& b = b_.fusion().tensor(y);
    if (a.rank() < 2 || b.rank() < 2 || a.dtype != b.dtype || a.dtype == DType::Bool) continue;
    if (number(a.sizes().back()) != number(b.sizes()[b.rank() - 2])) {
      if (number(a.sizes().back()) != number(b.sizes().back())) continue;
      AxisOrder order = rowMajor(b.rank());
      std::swap(order[b.rank() - 1], order[b.rank() - 2]);
      y = b_.permute(y, order);
    }
    b_.matmul(x, y);
    return true;
  }
  return false;
}

bool OpMaker::linear() {
  for (int tries = 60; tries > 0; --tries) {
    const ValueId x = tensor(true);
    const ValueId w = tensor(true);
    const TensorView& a = b_.fusion().tensor(x);
    const TensorView& b = b_.fusion().tensor(w);
    if (b.rank() != 2 || a.dtype != b.dtype || a.dtype == DType::Bool ||
        number(a.sizes().back()) != number(b.sizes()[1])) {
      continue;
    }
    std::optional<ValueId> bias;
    for (int more = 20; more > 0 && !bias; --more) {
      const ValueId id = tensor(true);
      const TensorView& c = b_.fusion().tensor(id);
      if (c.rank() == 1 && c.dtype == a.dtype && number(c.sizes()[0]) == number(b.sizes()[0])) {
        bias = id;
      }
    }
    ProductOptions options;
    if (isFloat(a.dtype)) options.activation = choices_.pick({"none", "relu", "gelu_tanh"});
    // The gelu of cuBLASLt is less exact than the bounds (tools/random/bounds.h) require.
    if (!context_.gelu_products && options.activation == "gelu_tanh") options.activation = "relu";
    b_.linear(x, w, bias, options);
    return true;
  }
  return false;
}

}  // namespace heddle::random
