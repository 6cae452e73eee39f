#include "ir/analysis/independent_parts.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_map>

#include "ir/analysis/kernel_rules.h"
#include "ir/graph/rewrite.h"

namespace heddle {
namespace {

// Union-find over the expressions of a segment. The representative of a set is its first
// expression.
class ExprSets {
 public:
  explicit ExprSets(size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), size_t{0});
  }
  size_t find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(size_t a, size_t b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<size_t> parent_;
};

bool connects(const Value& value) {
  return !value.is_scalar && (value.definition != kNoExpr || value.tensor.rank() > 0);
}

// Returns whether an output is an input, or is returned twice.
bool hasUnusualOutputs(const Fusion& segment) {
  std::set<ValueId> seen;
  return std::any_of(segment.outputs().begin(), segment.outputs().end(), [&](ValueId id) {
    return segment.value(id).definition == kNoExpr || !seen.insert(id).second;
  });
}

// Copies one part of a segment.
SegmentPart extractPart(const Fusion& segment, const std::vector<ExprId>& exprs,
                        const std::unordered_map<ValueId, int>& operand_of) {
  std::set<ExprId> needed(exprs.begin(), exprs.end());
  std::set<ValueId> values;
  std::vector<ExprId> open = exprs;
  while (!open.empty()) {
    const Expression& expr = segment.expr(open.back());
    open.pop_back();
    values.insert(expr.outputs[0]);
    for (ValueId input : expr.inputs) {
      if (!values.insert(input).second) continue;
      const ExprId definition = segment.value(input).definition;
      if (definition != kNoExpr && needed.insert(definition).second) open.push_back(definition);
    }
  }
  SegmentPart part;
  FusionRewriter rewriter(segment, segment.name, {values.begin(), values.end()});
  for (ValueId id : segment.inputs()) {
    if (!values.contains(id)) continue;
    rewriter.input(id);
    part.operands.push_back(operand_of.at(id));
  }
  for (ExprId id : needed) {
    const Expression& expr = segment.expr(id);
    const Value& old = segment.value(expr.outputs[0]);
    std::vector<ValueId> operands;
    for (ValueId input : expr.inputs) operands.push_back(rewriter.at(input));
    // The builder cannot compute extents from attributes, because the extents of a segment are
    // symbols of their own. The copy keeps the type of the old result.
    const ValueId now = rewriter.copyAside(id, std::move(operands), old.name);
    rewriter.fusion().mutableValue(now).tensor = old.tensor;
    rewriter.stand(expr.outputs[0], now);
  }
  for (ValueId id : segment.outputs()) {
    const ExprId definition = segment.value(id).definition;
    if (!std::binary_search(exprs.begin(), exprs.end(), definition)) continue;
    rewriter.builder().output(rewriter.at(id));
    part.operands.push_back(operand_of.at(id));
  }
  part.segment = std::move(rewriter).finishPart();
  return part;
}

}  // namespace

std::vector<std::vector<ExprId>> independentParts(const Fusion& segment) {
  ExprSets sets(segment.exprs().size());
  IdVector<ValueId, ExprId> reader(segment.values().size(), kNoExpr);  // the first one
  std::vector<ExprId> computed;
  for (ExprId id : segment.exprs().ids()) {
    const Expression& expr = segment.expr(id);
    if (isHostScalar(segment, expr)) continue;
    computed.push_back(id);
    for (ValueId input : expr.inputs) {
      if (!connects(segment.value(input))) continue;
      const ExprId definition = segment.value(input).definition;
      const ExprId other = definition != kNoExpr ? definition : reader[input];
      if (other != kNoExpr) sets.join(other.index(), id.index());
      reader[input] = id;
    }
  }
  if (hasUnusualOutputs(segment)) return {computed};
  std::vector<std::vector<ExprId>> parts;
  std::unordered_map<size_t, size_t> part_of;
  for (ExprId id : computed) {
    const auto [found, is_new] = part_of.try_emplace(sets.find(id.index()), parts.size());
    if (is_new) parts.emplace_back();
    parts[found->second].push_back(id);
  }
  return parts;
}

std::vector<SegmentPart> extractParts(const Fusion& segment) {
  std::unordered_map<ValueId, int> operand_of;
  int operand = 0;
  for (const auto* operands : {&segment.inputs(), &segment.outputs()}) {
    for (ValueId id : *operands) operand_of.emplace(id, operand++);
  }
  std::vector<SegmentPart> parts;
  for (const std::vector<ExprId>& exprs : independentParts(segment)) {
    parts.push_back(extractPart(segment, exprs, operand_of));
  }
  return parts;
}

}  // namespace heddle
