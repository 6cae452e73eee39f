#include "ir/passes/orders/followed_order.h"

#include <algorithm>

#include "ir/analysis/axis_map.h"

namespace heddle {
namespace {

// Returns, for each axis of the operand, the corresponding axis of the result, or -1 if there is
// none. Some axes of Index, Scan and Scatter ops (flip, cumsum, scatter) have no entry in the axis
// map, because an element of the result depends on operand elements at other positions along the
// axis. If the operand has as many axes as the result, this function pairs such an axis with the
// result axis at the same position.
std::vector<int64_t> resultAxes(const Fusion& fusion, const Expression& expr, const AxisMap& map,
                                size_t operand) {
  const std::vector<int>& result = map.outputs[0];
  const std::vector<int>& in = map.inputs[operand];
  const OpKind kind = expr.op->kind;
  const bool keeps_position =
      fusion.tensor(expr.inputs[operand]).rank() == result.size() &&
      (kind == OpKind::Index || kind == OpKind::Scan || kind == OpKind::Scatter);
  std::vector<int64_t> axes(in.size(), -1);
  for (size_t axis = 0; axis < in.size(); ++axis) {
    if (in[axis] != AxisMap::kNone) {
      const auto found = std::find(result.begin(), result.end(), in[axis]);
      if (found != result.end()) axes[axis] = found - result.begin();
    } else if (keeps_position) {
      axes[axis] = static_cast<int64_t>(axis);
    }
  }
  return axes;
}

// The operand that decides the order of the result.
struct Decider {
  const KnownOrder* known = nullptr;
  std::vector<int64_t> result_axes;
  int64_t axes_in_memory = 0;
  int64_t bytes = 0;
};

bool comesBefore(const Decider& a, const Decider& b) {
  if (a.axes_in_memory != b.axes_in_memory) return a.axes_in_memory > b.axes_in_memory;
  return a.bytes > b.bytes;
}

// Returns the result axes that correspond to axes of the operand in memory (KnownOrder::in_memory),
// in the memory order of the operand.
AxisOrder sharedAxes(const Decider& decider) {
  AxisOrder shared;
  for (int64_t axis : decider.known->order) {
    const size_t i = axis;
    if (decider.known->in_memory[i] && decider.result_axes[i] >= 0) {
      shared.push_back(decider.result_axes[i]);
    }
  }
  return shared;
}

AxisOrder withOthersOutside(const AxisOrder& shared, size_t rank) {
  AxisOrder order;
  for (int64_t axis : rowMajor(rank)) {
    if (std::find(shared.begin(), shared.end(), axis) == shared.end()) order.push_back(axis);
  }
  order.insert(order.end(), shared.begin(), shared.end());
  return order;
}

}  // namespace

KnownOrder orderAfter(const Fusion& fusion, const Expression& expr,
                      const IdVector<ValueId, KnownOrder>& known) {
  const size_t rank = fusion.tensor(expr.outputs[0]).rank();
  KnownOrder result{rowMajor(rank), std::vector<bool>(rank, false), true, {}};
  const AxisMap map = axisMapOf(fusion, expr);
  Decider first;
  for (size_t i = 0; i < map.inputs.size(); ++i) {
    const Value& operand = fusion.value(expr.inputs[i]);
    if (operand.is_scalar) continue;
    Decider each{&known[expr.inputs[i]], resultAxes(fusion, expr, map, i), 0,
                 sizeOf(operand.tensor.dtype)};
    for (size_t axis = 0; axis < each.result_axes.size(); ++axis) {
      if (!each.known->in_memory[axis]) continue;
      ++each.axes_in_memory;
      const int64_t to = each.result_axes[axis];
      if (to >= 0) result.in_memory[to] = true;
    }
    if (first.known == nullptr || comesBefore(each, first)) first = std::move(each);
  }
  if (first.known == nullptr) return result;
  result.is_followed = first.known->is_followed;
  result.from = first.known->from;
  AxisOrder shared = sharedAxes(first);
  const bool is_product = expr.op->kind == OpKind::Matmul;
  const auto columns = static_cast<int64_t>(rank) - 1;
  if (is_product) std::erase(shared, columns);
  if (std::is_sorted(shared.begin(), shared.end())) return result;
  if (is_product) shared.push_back(columns);
  result.order = withOthersOutside(shared, rank);
  return result;
}

}  // namespace heddle
