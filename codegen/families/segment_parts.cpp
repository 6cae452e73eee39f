#include "codegen/families/segment_parts.h"

#include <algorithm>

namespace heddle::codegen {

SegmentParts::SegmentParts(const Fusion& segment, const Analysis& analysis,
                           const AxisExtents& extents)
    : segment_(segment), analysis_(analysis), extents_(extents) {}

SegmentParts::Needed SegmentParts::neededFor(const std::vector<ValueId>& wanted) const {
  IdVector<ValueId, bool> flags(segment_.values().size(), false);
  for (ValueId id : wanted) flags[id] = true;
  Needed needed;
  for (ExprId id : segment_.exprs().ids().reversed()) {
    const Expression& expr = segment_.expr(id);
    if (!flags[expr.outputs[0]] || isKept(expr.outputs[0])) continue;
    needed.exprs.push_back(id);
    for (ValueId input : expr.inputs) flags[input] = true;
  }
  std::reverse(needed.exprs.begin(), needed.exprs.end());
  for (ValueId id : segment_.inputs()) {
    if (flags[id]) needed.inputs.push_back(id);
  }
  for (const auto& [id, temporary] : kept_) {
    if (flags[id]) needed.inputs.push_back(id);
  }
  return needed;
}

SweepSegment SegmentParts::part(const std::vector<ValueId>& outputs,
                                const std::vector<ValueId>& extra) {
  std::vector<ValueId> wanted = outputs;
  wanted.insert(wanted.end(), extra.begin(), extra.end());
  const Needed needed = neededFor(wanted);
  FusionRewriter rewriter = rewriterFor(needed);
  // In the fusion of a part, an output must be neither an input nor another output. If a value
  // violates this rule, a copy of the value becomes the output.
  const auto copyOf = [&](ValueId id) {
    const ValueId copy = rewriter.set(rewriter.at(id), segment_.value(id).name, 0);
    rewriter.fusion().mutableValue(copy).tensor.sharding = segment_.tensor(id).sharding;
    return copy;
  };
  SweepSegment sweep;
  for (ValueId id : outputs) {
    rewriter.builder().output(isKept(id) ? copyOf(id) : rewriter.at(id));
    sweep.outputs.push_back(outputOperand(id));
  }
  const auto contains = [](const std::vector<ValueId>& list, ValueId id) {
    return std::find(list.begin(), list.end(), id) != list.end();
  };
  for (size_t i = 0; i < extra.size(); ++i) {
    const ValueId id = extra[i];
    const bool earlier = std::find(extra.begin(), extra.begin() + static_cast<ptrdiff_t>(i), id) !=
                         extra.begin() + static_cast<ptrdiff_t>(i);
    const bool copied = earlier || contains(needed.inputs, id) || contains(outputs, id);
    rewriter.builder().output(copied ? copyOf(id) : rewriter.at(id));
    sweep.outputs.push_back({-1, static_cast<int>(temporaries_.size())});
    stored_[id] = static_cast<int>(temporaries_.size());
    temporary_values_.push_back(id);
    temporaries_.push_back(denseDescOf(segment_, analysis_, extents_, id));
  }
  sweep.segment = std::move(rewriter).finishPart();
  for (ValueId id : needed.inputs) sweep.inputs.push_back(inputOperand(id));
  return sweep;
}

void SegmentParts::keep() { kept_.merge(stored_); }

FusionRewriter SegmentParts::rewriterFor(const Needed& needed) const {
  std::vector<ValueId> all = needed.inputs;
  for (ExprId id : needed.exprs) {
    const Expression& expr = segment_.expr(id);
    all.insert(all.end(), expr.inputs.begin(), expr.inputs.end());
    all.insert(all.end(), expr.outputs.begin(), expr.outputs.end());
  }
  FusionRewriter rewriter(segment_, segment_.name, all);
  for (ValueId id : needed.inputs) rewriter.input(id);
  for (ExprId id : needed.exprs) rewriter.copyWithType(id);
  return rewriter;
}

SweepSegment::Operand SegmentParts::inputOperand(ValueId id) const {
  const auto found = kept_.find(id);
  if (found != kept_.end()) return {-1, found->second};
  const std::vector<ValueId>& inputs = segment_.inputs();
  return {static_cast<int>(std::find(inputs.begin(), inputs.end(), id) - inputs.begin()), -1};
}

SweepSegment::Operand SegmentParts::outputOperand(ValueId id) const {
  const std::vector<ValueId>& all = segment_.outputs();
  const auto position = std::find(all.begin(), all.end(), id) - all.begin();
  return {static_cast<int>(segment_.inputs().size()) + static_cast<int>(position), -1};
}

}  // namespace heddle::codegen
