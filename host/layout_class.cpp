#include "host/layout_class.h"

#include <algorithm>

namespace heddle::host {
namespace {

Layout::Observed observe(const TensorDesc& desc) {
  Layout::Observed observed;
  const std::vector<int64_t>& alloc = desc.alloc.empty() ? desc.sizes : desc.alloc;
  observed.order = rowMajor(desc.rank());
  observed.contiguous.assign(desc.rank(), true);
  const bool is_given = desc.strides.size() == desc.rank() && alloc.size() == desc.rank();
  if (!is_given || desc.numel() == 0) return observed;
  std::stable_sort(observed.order.begin(), observed.order.end(), [&](int64_t a, int64_t b) {
    return desc.strides[static_cast<size_t>(a)] > desc.strides[static_cast<size_t>(b)];
  });
  int64_t span = 1;
  for (size_t i = observed.order.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(observed.order[i]);
    if (desc.sizes[axis] == 1) continue;
    observed.contiguous[axis] = desc.strides[axis] == span;
    span = desc.strides[axis] * alloc[axis];
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
