#include "ir/analysis/axis_map.h"

#include <algorithm>
#include <numeric>

#include "ir/base/check.h"

namespace heddle {
namespace {

std::vector<int> identity(size_t rank) {
  std::vector<int> map(rank);
  std::iota(map.begin(), map.end(), 0);
  return map;
}

// Maps operand axes to the output axes with the same index. If an operand axis has extent 1 and the
// output axis does not, the operand axis is broadcast and maps to no axis.
std::vector<int> stretched(const TensorView& operand, const TensorView& output) {
  std::vector<int> map = identity(operand.rank());
  for (size_t i = 0; i < map.size(); ++i) {
    if (operand.domain[i].extent.isConstant(1) && !output.domain[i].extent.isConstant(1)) {
      map[i] = AxisMap::kNone;
    }
  }
  return map;
}

AxisMap reductionMap(const TensorView& in, const Expression& expr) {
  const auto& axes = expr.attr<std::vector<int64_t>>("axes");
  const bool keepdim = expr.find("keepdim") != nullptr && expr.attr<bool>("keepdim");
  AxisMap map{in.domain, {identity(in.rank())}, {{}}};
  for (size_t i = 0; i < in.rank(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i))) {
      map.outputs[0].push_back(static_cast<int>(i));
      continue;
    }
    map.space[i].kind = IterKind::Reduction;
    if (keepdim) map.outputs[0].push_back(AxisMap::kNone);
  }
  return map;
}

AxisMap broadcastMap(const TensorView& out, const Expression& expr) {
  const auto& added = expr.attr<std::vector<int64_t>>("axes");
  AxisMap map{out.domain, {{}}, {identity(out.rank())}};
  for (size_t i = 0; i < out.rank(); ++i) {
    if (!std::binary_search(added.begin(), added.end(), static_cast<int64_t>(i))) {
      map.inputs[0].push_back(static_cast<int>(i));
    }
  }
  return map;
}

AxisMap permuteMap(const TensorView& out, const Expression& expr) {
  const auto& axes = expr.attr<std::vector<int64_t>>("axes");
  AxisMap map{out.domain, {std::vector<int>(out.rank())}, {identity(out.rank())}};
  for (size_t i = 0; i < axes.size(); ++i) {
    map.inputs[0][axes[i]] = static_cast<int>(i);
  }
  return map;
}

AxisMap sliceMap(const TensorView& in, const TensorView& out, const Expression& expr) {
  const auto& starts = expr.attr<std::vector<Size>>("starts");
  const auto& stops = expr.attr<std::vector<Size>>("stops");
  AxisMap map{out.domain, {identity(in.rank())}, {identity(out.rank())}};
  const Attr* steps = expr.find("steps");
  for (size_t i = 0; i < in.rank(); ++i) {
    const bool strided = steps != nullptr && std::get<std::vector<int64_t>>(*steps)[i] != 1;
    if (strided || !starts[i].isConstant(0) || !(stops[i] == in.domain[i].extent)) {
      map.inputs[0][i] = AxisMap::kNone;
    }
  }
  return map;
}

AxisMap diagonalMap(const TensorView& in, const TensorView& out, const Expression& expr) {
  AxisMap map{out.domain, {std::vector<int>(in.rank(), AxisMap::kNone)}, {identity(out.rank())}};
  int next = 0;
  for (size_t i = 0; i < in.rank(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    const bool removed = axis == expr.attr<int64_t>("axis1") || axis == expr.attr<int64_t>("axis2");
    if (!removed) map.inputs[0][i] = next++;
  }
  return map;
}

// Maps the axes that the reshape keeps. The function compares both shapes from the left, and then
// from the right, as long as the extents are equal: these axes are kept. All axes in between map to
// no axis, even if the reshape keeps one of them.
AxisMap reshapeMap(const TensorView& in, const TensorView& out) {
  AxisMap map{out.domain, {std::vector<int>(in.rank(), AxisMap::kNone)}, {identity(out.rank())}};
  size_t left = 0;
  const size_t common = std::min(in.rank(), out.rank());
  while (left < common && in.domain[left].extent == out.domain[left].extent) {
    map.inputs[0][left] = static_cast<int>(left);
    ++left;
  }
  size_t right = 0;
  while (right + left < common &&
         in.domain[in.rank() - 1 - right].extent == out.domain[out.rank() - 1 - right].extent) {
    map.inputs[0][in.rank() - 1 - right] = static_cast<int>(out.rank() - 1 - right);
    ++right;
  }
  return map;
}

// Maps the batch axes of an operand to output axes, counted from the right. If a batch axis has
// extent 1 and the output axis does not, the batch axis is broadcast and maps to no axis.
std::vector<int> batchAxes(const TensorView& operand, const TensorView& out) {
  std::vector<int> axes;
  const size_t missing = out.rank() - operand.rank();
  for (size_t i = 0; i + 2 < operand.rank(); ++i) {
    const bool wider = !out.domain[i + missing].extent.isConstant(1);
    const bool stretches = operand.domain[i].extent.isConstant(1) && wider;
    axes.push_back(stretches ? AxisMap::kNone : static_cast<int>(i + missing));
  }
  return axes;
}

AxisMap productMap(const Fusion& fusion, const Expression& expr, const TensorView& out) {
  const TensorView& a = fusion.tensor(expr.inputs[0]);
  const TensorView& b = fusion.tensor(expr.inputs[1]);
  const int k = static_cast<int>(out.rank());
  const int m = k - 2;
  const int n = k - 1;
  AxisMap map{out.domain, {batchAxes(a, out), {}}, {identity(out.rank())}};
  map.space.push_back({a.domain.back().extent, IterKind::Reduction});
  map.inputs[0].insert(map.inputs[0].end(), {m, k});
  if (expr.op->name == "linear") {
    map.inputs[1] = {n, k};
    if (expr.inputs.size() > 2) map.inputs.push_back({n});
    return map;
  }
  map.inputs[1] = batchAxes(b, out);
  map.inputs[1].insert(map.inputs[1].end(), {k, n});
  return map;
}

AxisMap indexMap(const Fusion& fusion, const Expression& expr, const TensorView& in,
                 const TensorView& out) {
  AxisMap map{out.domain, {identity(in.rank())}, {identity(out.rank())}};
  map.inputs.resize(expr.inputs.size());
  std::vector<int>& axes = map.inputs[0];
  if (expr.op->name == "flip") {
    for (int64_t axis : expr.attr<std::vector<int64_t>>("axes")) {
      axes[axis] = AxisMap::kNone;
    }
    return map;
  }
  if (expr.op->name == "pad") {
    const auto& lows = expr.attr<std::vector<Size>>("lows");
    const auto& highs = expr.attr<std::vector<Size>>("highs");
    for (size_t i = 0; i < in.rank(); ++i) {
      if (!lows[i].isConstant(0) || !highs[i].isConstant(0)) axes[i] = AxisMap::kNone;
    }
    return map;
  }
  const TensorView& index = fusion.tensor(expr.inputs[1]);
  const size_t axis = expr.axis();
  if (expr.op->name == "take") {
    for (size_t i = 0; i < index.rank(); ++i) map.inputs[1].push_back(static_cast<int>(axis + i));
    for (size_t i = axis + 1; i < in.rank(); ++i) {
      axes[i] = static_cast<int>(i + index.rank()) - 1;
    }
  } else {
    map.inputs[1] = identity(index.rank());
  }
  axes[axis] = AxisMap::kNone;
  return map;
}

// Maps an op that needs all elements along one axis at once. This axis of each operand maps to no
// axis.
AxisMap wholeLinesMap(const Fusion& fusion, const Expression& expr, const TensorView& out) {
  const size_t axis = expr.axis();
  AxisMap map{out.domain, {}, {identity(out.rank())}};
  for (ValueId id : expr.inputs) {
    map.inputs.push_back(stretched(fusion.tensor(id), out));
    map.inputs.back()[axis] = AxisMap::kNone;
  }
  return map;
}

}  // namespace

AxisMap axisMapOf(const Fusion& fusion, const Expression& expr) {
  const TensorView& out = fusion.tensor(expr.outputs.at(0));
  auto in = [&](size_t i) -> const TensorView& { return fusion.tensor(expr.inputs.at(i)); };
  switch (expr.op->kind) {
    case OpKind::Constant:
      return {{}, {}, {{}}};
    case OpKind::SizeOf:
      return {{}, {std::vector<int>(in(0).rank(), AxisMap::kNone)}, {{}}};
    case OpKind::Pointwise:
    case OpKind::Expand:
    case OpKind::Set: {
      AxisMap map{out.domain, {}, {identity(out.rank())}};
      for (ValueId id : expr.inputs) {
        const bool scalar = fusion.value(id).is_scalar;
        map.inputs.push_back(scalar ? std::vector<int>{} : stretched(fusion.tensor(id), out));
      }
      return map;
    }
    case OpKind::Reduction:
      return reductionMap(in(0), expr);
    case OpKind::Broadcast:
      return broadcastMap(out, expr);
    case OpKind::Permute:
      return permuteMap(out, expr);
    case OpKind::Slice:
      return sliceMap(in(0), out, expr);
    case OpKind::Diagonal:
      return diagonalMap(in(0), out, expr);
    case OpKind::Reshape:
      return reshapeMap(in(0), out);
    case OpKind::Full:
      return {out.domain, {{}}, {identity(out.rank())}};
    case OpKind::Iota:
      return {out.domain, {}, {identity(out.rank())}};
    case OpKind::Index:
      return indexMap(fusion, expr, in(0), out);
    case OpKind::Scan:
    case OpKind::Scatter:
      return wholeLinesMap(fusion, expr, out);
    case OpKind::Matmul:
      return productMap(fusion, expr, out);
  }
  HEDDLE_CHECK(false, "op {} has an unknown kind", expr.op->name);
}

}  // namespace heddle
