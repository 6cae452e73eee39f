#include "ir/analysis/axis_map.h"
#include "ir/base/check.h"
#include "ir/ops/literal.h"
#include "ir/reference/elements.h"

namespace heddle {
namespace {

HostTensor scalarTensor(DType dtype, const Scalar& value) {
  HostTensor tensor(dtype, {});
  tensor.set(0, value);
  return tensor;
}

// Returns the start of a slice along each axis. Throws UserError if the slice is outside of its
// tensor.
std::vector<int64_t> sliceStarts(const ReferenceContext& context, const Expression& expr,
                                 const std::vector<int64_t>& sizes) {
  const auto& starts = expr.attr<std::vector<Size>>("starts");
  const auto& stops = expr.attr<std::vector<Size>>("stops");
  std::vector<int64_t> result;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t start = context.evaluate(starts[i]);
    const int64_t stop = context.evaluate(stops[i]);
    HEDDLE_USER_CHECK(0 <= start && start <= stop && stop <= sizes[i],
                      "slice that computes %{}: axis {} from {} to {} is outside its extent {}",
                      context.fusion.value(expr.outputs[0]).name, i, start, stop, sizes[i]);
    result.push_back(start);
  }
  return result;
}

int64_t elements(const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

void checkReshape(const ReferenceContext& context, const Expression& expr) {
  const std::vector<int64_t> from = context.sizesOf(expr.inputs[0]);
  const std::vector<int64_t> to = context.sizesOf(expr.outputs[0]);
  HEDDLE_USER_CHECK(elements(from) == elements(to),
                    "reshape that computes %{}: {} and {} have different numbers of elements",
                    context.fusion.value(expr.outputs[0]).name, str(from), str(to));
}

// Returns the strides of an operand along the axes of `map.space`.
std::vector<int64_t> spaceStrides(const ReferenceContext& context, const Expression& expr,
                                  const AxisMap& map, size_t operand) {
  std::vector<int64_t> strides(map.space.size(), 0);
  const ValueId id = expr.inputs[operand];
  if (context.fusion.value(id).is_scalar) return strides;
  const std::vector<int64_t> dense = denseStrides(context.sizesOf(id));
  for (size_t axis = 0; axis < map.inputs[operand].size(); ++axis) {
    const int to = map.inputs[operand][axis];
    if (to != AxisMap::kNone) strides[to] = dense[axis];
  }
  return strides;
}

// Splits the strides into two lists: one for the axes of the output, and one for the reduced axes.
Access splitStrides(const AxisMap& map, const std::vector<int64_t>& strides) {
  Access access;
  for (int axis : map.outputs[0]) {
    access.strides.push_back(axis == AxisMap::kNone ? 0 : strides[axis]);
  }
  for (size_t i = 0; i < map.space.size(); ++i) {
    if (map.space[i].kind == IterKind::Reduction) access.inner_strides.push_back(strides[i]);
  }
  return access;
}

}  // namespace

std::vector<int64_t> ReferenceContext::sizesOf(ValueId id) const {
  if (const auto found = partial_sizes.find(id); found != partial_sizes.end()) return found->second;
  std::vector<int64_t> result;
  for (const IterDomain& axis : fusion.tensor(id).domain) result.push_back(evaluate(axis.extent));
  return result;
}

std::vector<int64_t> denseStrides(const std::vector<int64_t>& sizes) {
  return stridesFor(sizes, rowMajor(sizes.size()));
}

HostTensor inputValue(const ReferenceContext& context, ValueId id) {
  const Value& value = context.fusion.value(id);
  if (value.is_scalar) {
    auto found = context.inputs.scalars.find(id);
    if (found != context.inputs.scalars.end()) {
      return scalarTensor(value.tensor.dtype, found->second);
    }
    HEDDLE_USER_CHECK(value.default_value.has_value(),
                      "scalar input %{} has no value and no default", value.name);
    return scalarTensor(value.tensor.dtype, *value.default_value);
  }
  auto found = context.inputs.tensors.find(id);
  if (found == context.inputs.tensors.end() && context.inputs.random_seed) {
    return randomTensor(value.tensor.dtype, context.sizesOf(id), *context.inputs.random_seed,
                        value.name);
  }
  HEDDLE_USER_CHECK(found != context.inputs.tensors.end(), "input %{} has no value", value.name);
  const HostTensor& tensor = found->second;
  const std::vector<int64_t> expected = context.sizesOf(id);
  HEDDLE_USER_CHECK(tensor.dtype == value.tensor.dtype && tensor.sizes == expected,
                    "input %{}: got {}{}, expected {}{}", value.name, name(tensor.dtype),
                    str(tensor.sizes), name(value.tensor.dtype), str(expected));
  return tensor;
}

HostTensor leafValue(const ReferenceContext& context, const Expression& expr) {
  const DType dtype = context.fusion.tensor(expr.outputs[0]).dtype;
  if (expr.op->kind == OpKind::SizeOf) {
    const size_t axis = expr.axis();
    return scalarTensor(dtype, context.sizesOf(expr.inputs[0]).at(axis));
  }
  HEDDLE_CHECK(expr.op->kind == OpKind::Constant, "{} is neither a constant nor a size",
               expr.op->name);
  const Attr* value = expr.find("value");
  HEDDLE_CHECK(value != nullptr, "a constant without a value");
  return scalarTensor(dtype, literalValue(*value));
}

Accesses accessesOf(const ReferenceContext& context, const Expression& expr) {
  const AxisMap map = axisMapOf(context.fusion, expr);
  Accesses result;
  if (expr.op->kind == OpKind::Reshape) {  // the same elements in row-major order
    checkReshape(context, expr);
    result.operands.push_back({0, denseStrides(context.sizesOf(expr.outputs[0])), {}});
    return result;
  }
  if (expr.op->kind == OpKind::Slice) {  // the same axes, shifted and strided
    const std::vector<int64_t> sizes = context.sizesOf(expr.inputs[0]);
    const std::vector<int64_t> starts = sliceStarts(context, expr, sizes);
    Access access{0, denseStrides(sizes), {}};
    const Attr* steps = expr.find("steps");
    for (size_t i = 0; i < sizes.size(); ++i) {
      access.offset += starts[i] * access.strides[i];
      if (steps != nullptr) access.strides[i] *= std::get<std::vector<int64_t>>(*steps)[i];
    }
    result.operands.push_back(std::move(access));
    return result;
  }
  if (expr.op->kind == OpKind::Diagonal) {  // a step along the diagonal moves along both axes
    const std::vector<int64_t> strides = denseStrides(context.sizesOf(expr.inputs[0]));
    Access access{0, std::vector<int64_t>(map.space.size(), 0), {}};
    for (size_t axis = 0; axis < strides.size(); ++axis) {
      const int to = map.inputs[0][axis];
      (to == AxisMap::kNone ? access.strides.back() : access.strides[to]) += strides[axis];
    }
    result.operands.push_back(std::move(access));
    return result;
  }
  for (const IterDomain& axis : map.space) {
    if (axis.kind == IterKind::Reduction)
      result.inner_sizes.push_back(context.evaluate(axis.extent));
  }
  for (size_t i = 0; i < expr.inputs.size(); ++i) {
    result.operands.push_back(splitStrides(map, spaceStrides(context, expr, map, i)));
  }
  return result;
}

}  // namespace heddle
