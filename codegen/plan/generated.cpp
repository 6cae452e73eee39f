#include "codegen/plan/generated.h"

#include <algorithm>
#include <optional>

#include "ir/analysis/indexed_axes.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

// Returns whether the segment may have a generated axis. An expand, full or iota must add the axis,
// and a reduction must remove it. Otherwise some operand has the axis.
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
  IdVector<AxisId, bool> known(analysis.reduced.size(), false);
  // Marks the axes of the value. Returns whether one of them was unknown.
  const auto know = [&](ValueId id) {
    bool is_new = false;
    for (AxisId axis : analysis.axes[id]) {
      if (!axis.valid() || known[axis]) continue;
      known[axis] = is_new = true;
    }
    return is_new;
  };
  for (ValueId id : segment.inputs()) know(id);
  for (ValueId id : segment.outputs()) know(id);
  for (const Expression& expr : segment.exprs()) {
    if (expr.op->kind != OpKind::Index) continue;
    for (const IndexedAxis& indexed : indexedAxesOf(segment, expr)) {
      if (indexed.output_axis == IndexedAxis::kByValue) continue;
      const AxisId axis = analysis.axes[expr.outputs[0]][indexed.output_axis];
      if (axis.valid()) known[axis] = true;
    }
  }
  std::vector<ValueId> found;
  for (ValueId id : segment.values().ids()) {
    if (know(id)) found.push_back(id);
  }
  return found;
}

RunSizes unshardedSizes(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                        const std::vector<TensorDesc>& outputs) {
  const Analysis analysis = analyze(segment);
  if (analysis.generated.empty() && analysis.widths.empty()) return {};
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
  RunSizes run;
  for (ValueId id : analysis.generated) {
    const Value& value = segment.value(id);
    HEDDLE_CHECK(!value.tensor.sharding, "%{} is sharded, and no operand has its axes", value.name);
    std::vector<int64_t> extents;
    for (const IterDomain& axis : value.tensor.domain) {
      extents.push_back(axis.extent.evaluate(lookupIn(sizes)));
    }
    run.generated.push_back(denseDesc(value.tensor.dtype, std::move(extents)));
  }
  for (const Size& width : analysis.widths) run.widths.push_back(width.evaluate(lookupIn(sizes)));
  return run;
}

PartSizes::PartSizes(const Fusion& segment, const Analysis& analysis, const Fusion& part,
                     const Analysis& of_part) {
  const auto indexIn = [](const auto& list, const auto& element) {
    return static_cast<size_t>(std::find(list.begin(), list.end(), element) - list.begin());
  };
  for (ValueId id : of_part.generated) {
    const std::optional<ValueId> whole = segment.find(part.value(id).name);
    HEDDLE_CHECK(whole.has_value(), "%{} is no value of the segment", part.value(id).name);
    values_.push_back(*whole);
    generated_.push_back(indexIn(analysis.generated, *whole));
  }
  for (const Size& width : of_part.widths) widths_.push_back(indexIn(analysis.widths, width));
}

RunSizes PartSizes::of(const RunSizes& run) const {
  RunSizes of_part;
  of_part.clusters = run.clusters;
  for (size_t i : generated_) of_part.generated.push_back(run.generated.at(i));
  for (size_t i : widths_) of_part.widths.push_back(run.widths.at(i));
  return of_part;
}

RunSizes PartSizes::of(const Fusion& segment, const Analysis& analysis,
                       const AxisExtents& extents) const {
  RunSizes of_part;
  of_part.clusters = extents.clusters;
  for (ValueId id : values_) {
    of_part.generated.push_back(denseDescOf(segment, analysis, extents, id));
  }
  for (size_t i : widths_) of_part.widths.push_back(extents.widths.at(i));
  return of_part;
}

RunSizes partSizes(const Fusion& segment, const Analysis& analysis, const AxisExtents& extents,
                   const Fusion& part, const Analysis& of_part) {
  return PartSizes(segment, analysis, part, of_part).of(segment, analysis, extents);
}

}  // namespace heddle::codegen
