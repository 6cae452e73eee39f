#include "host/program_key/layout_class.h"

#include <algorithm>

namespace heddle::host {
namespace {

// Returns the axes in descending order of strides. A stretched axis (stride 0) has no position in
// memory. If the order of all other axes is row-major, stretched axes stay at their logical
// positions; otherwise they are outermost. Stretched axes alone therefore never change the memory
// order of results.
AxisOrder orderOf(const TensorDesc& desc) {
  const auto stride = [&](int64_t axis) { return desc.strides[axis]; };
  AxisOrder order = rowMajor(desc.rank());
  const auto first = std::stable_partition(order.begin(), order.end(),
                                           [&](int64_t axis) { return stride(axis) == 0; });
  std::stable_sort(first, order.end(), [&](int64_t a, int64_t b) { return stride(a) > stride(b); });
  return std::is_sorted(first, order.end()) ? rowMajor(desc.rank()) : order;
}

Layout::Observed observe(const TensorDesc& desc) {
  Layout::Observed observed;
  const std::vector<int64_t>& alloc = desc.alloc.empty() ? desc.sizes : desc.alloc;
  observed.order = rowMajor(desc.rank());
  observed.contiguous.assign(desc.rank(), true);
  const bool is_given = desc.strides.size() == desc.rank() && alloc.size() == desc.rank();
  if (!is_given || desc.numel() == 0) return observed;
  observed.order = orderOf(desc);
  int64_t span = 1;
  bool is_stretched = false;  // whether the next inner axis has the stride 0
  for (size_t i = observed.order.size(); i-- > 0;) {
    const size_t axis = observed.order[i];
    if (desc.sizes[axis] == 1) continue;
    observed.contiguous[axis] = !is_stretched && desc.strides[axis] == span;
    is_stretched = desc.strides[axis] == 0;
    if (!is_stretched) span = desc.strides[axis] * alloc[axis];
  }
  return observed;
}

}  // namespace

LayoutClass classOf(const Fusion& fusion, const std::vector<Argument>& inputs, bool one_rank) {
  LayoutClass result(fusion.inputs().size());
  for (size_t i = 0; one_rank && i < std::min(inputs.size(), result.size()); ++i) {
    const Value& value = fusion.value(fusion.inputs()[i]);
    const auto* tensor = std::get_if<Tensor>(&inputs[i]);
    if (value.is_scalar || tensor == nullptr || value.tensor.layout.observed) continue;
    if (tensor->desc.rank() == value.tensor.rank()) result[i] = observe(tensor->desc);
  }
  return result;
}

Fusion withLayouts(Fusion fusion, const LayoutClass& layouts) {
  for (size_t i = 0; i < layouts.size(); ++i) {
    if (layouts[i]) fusion.layout(fusion.inputs()[i]).observed = layouts[i];
  }
  return fusion;
}

}  // namespace heddle::host
