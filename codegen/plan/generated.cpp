#include "codegen/plan/generated.h"

#include <algorithm>

#include "ir/analysis/indexed_axes.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

// Returns whether the segment may have a generated axis. Every other axis is an axis of a tensor in
// memory.
bool mayGenerate(const Fusion& segment) {
  bool reduces = false;
  bool generates = false;
  for (const Expression& expr : segment.exprs()) {
    const OpKind kind = expr.op->kind;
    reduces = reduces || kind == OpKind::Reduction;
    generates = generates || kind == OpKind::Expand || kind == OpKind::Full || kind == OpKind::Iota;
  }
  return reduces && generates;
}

std::vector<ValueId> generatedOfParts(const Fusion& segment,
                                      const std::vector<AnalyzedPart>& parts) {
  std::vector<ValueId> found;
  for (const AnalyzedPart& one : parts) {
    for (ValueId id : one.analysis.generated) {
      found.push_back(segment.find(one.part.segment.value(id).name).value());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::vector<ValueId> generatedValues(const Fusion& segment) {
  if (!mayGenerate(segment)) return {};
  return analyze(segment).generated;
}

std::vector<ValueId> findGenerated(const Fusion& segment, const Analysis& analysis) {
  if (!mayGenerate(segment)) return {};
  if (!analysis.parts.empty()) return generatedOfParts(segment, analysis.parts);
  std::vector<bool> known(analysis.reduced.size(), false);
  // Marks the axes of the value. Returns whether one of them was unknown.
  const auto know = [&](ValueId id) {
    bool is_new = false;
    for (int axis : analysis.axes[id]) {
      if (axis < 0 || known[static_cast<size_t>(axis)]) continue;
      known[static_cast<size_t>(axis)] = is_new = true;
    }
    return is_new;
  };
  for (ValueId id : segment.inputs()) know(id);
  for (ValueId id : segment.outputs()) know(id);
  for (const Expression& expr : segment.exprs()) {
    if (expr.op->kind != OpKind::Index) continue;
    for (const IndexedAxis& place : indexedAxesOf(segment, expr)) {
      if (place.output_axis == IndexedAxis::kByValue) continue;
      const int axis = analysis.axes[expr.outputs[0]][static_cast<size_t>(place.output_axis)];
      if (axis >= 0) known[static_cast<size_t>(axis)] = true;
    }
  }
  std::vector<ValueId> found;
  for (ValueId id : segment.values().ids()) {
    if (know(id)) found.push_back(id);
  }
  return found;
}

std::vector<TensorDesc> unshardedGenerated(const Fusion& segment,
                                           const std::vector<TensorDesc>& inputs,
                                           const std::vector<TensorDesc>& outputs) {
  const std::vector<ValueId> values = generatedValues(segment);
  if (values.empty()) return {};
  SizeBindings sizes;
  const auto bind = [&](ValueId id, const TensorDesc& desc) {
    const std::vector<IterDomain>& domain = segment.value(id).tensor.domain;
    for (size_t axis = 0; axis < std::min(domain.size(), desc.rank()); ++axis) {
      const Size& extent = domain[axis].extent;
      if (extent.kind() == Size::Kind::Symbol) {
        sizes.emplace(extent.symbolName(), desc.global[axis]);
      }
    }
  };
  for (size_t i = 0; i < inputs.size(); ++i) bind(segment.inputs()[i], inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) bind(segment.outputs()[i], outputs[i]);
  std::vector<TensorDesc> descs;
  for (ValueId id : values) {
    const Value& value = segment.value(id);
    HEDDLE_CHECK(!value.tensor.sharding, "%{} is sharded, and no operand has its axes", value.name);
    std::vector<int64_t> extents;
    for (const IterDomain& axis : value.tensor.domain) {
      extents.push_back(axis.extent.evaluate(lookupIn(sizes)));
    }
    descs.push_back(denseDesc(value.tensor.dtype, std::move(extents)));
  }
  return descs;
}

}  // namespace heddle::codegen
