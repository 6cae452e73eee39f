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

// Marks the expressions that are copied into each part that needs their result: expressions on
// scalars, and each `full` without axes that the segment does not return.
IdVector<ExprId, bool> copiedExprs(const Fusion& segment) {
  const IdVector<ValueId, bool> is_output = segment.outputFlags();
  IdVector<ExprId, bool> copied;
  for (const Expression& expr : segment.exprs()) {
    const ValueId result = expr.outputs[0];
    const bool is_tensor = expr.op->kind == OpKind::Full && segment.tensor(result).rank() == 0;
    copied.push_back(isHostScalar(segment, expr) || (is_tensor && !is_output[result]));
  }
  return copied;
}

// Returns whether some output is also an input, or is returned twice.
bool hasUnusualOutputs(const Fusion& segment) {
  std::set<ValueId> seen;
  return std::any_of(segment.outputs().begin(), segment.outputs().end(), [&](ValueId id) {
    return segment.value(id).definition == kNoExpr || !seen.insert(id).second;
  });
}

// The expressions of a part, including the scalar expressions that the part needs, the inputs of
// the part in the order of use, and all values of the part. A scalar expression comes right before
// the first expression of the part that needs it. Parts with the same ops therefore have the same
// order of expressions, wherever the segment computes shared scalars.
struct PartContents {
  std::vector<ExprId> exprs;
  std::vector<ValueId> inputs;
  std::vector<ValueId> values;
};

PartContents contentsOf(const Fusion& segment, const std::vector<ExprId>& computed) {
  PartContents contents;
  std::set<ValueId> seen;
  for (ExprId id : computed) {
    // Add the expression. Also add the scalar expressions that it needs and that were not yet
    // added.
    std::set<ExprId> added = {id};
    std::vector<ExprId> open = {id};
    while (!open.empty()) {
      const Expression& expr = segment.expr(open.back());
      open.pop_back();
      for (ValueId input : expr.inputs) {
        if (!seen.insert(input).second) continue;
        contents.values.push_back(input);
        const ExprId definition = segment.value(input).definition;
        if (definition == kNoExpr) contents.inputs.push_back(input);
        if (definition != kNoExpr && added.insert(definition).second) open.push_back(definition);
      }
    }
    contents.exprs.insert(contents.exprs.end(), added.begin(), added.end());
    seen.insert(segment.expr(id).outputs[0]);
    contents.values.push_back(segment.expr(id).outputs[0]);
  }
  return contents;
}

// Copies one part of a segment.
SegmentPart extractPart(const Fusion& segment, const std::vector<ExprId>& computed,
                        const std::unordered_map<ValueId, int>& operand_of) {
  const PartContents contents = contentsOf(segment, computed);
  SegmentPart part;
  FusionRewriter rewriter(segment, segment.name, contents.values);
  for (ValueId id : contents.inputs) {
    rewriter.input(id);
    part.operands.push_back(operand_of.at(id));
  }
  for (ExprId id : contents.exprs) rewriter.copyWithType(id);
  for (ValueId id : segment.outputs()) {
    const ExprId definition = segment.value(id).definition;
    if (!std::binary_search(computed.begin(), computed.end(), definition)) continue;
    rewriter.builder().output(rewriter.at(id));
    part.operands.push_back(operand_of.at(id));
  }
  part.segment = std::move(rewriter).finishPart();
  return part;
}

}  // namespace

std::vector<std::vector<ExprId>> independentParts(const Fusion& segment) {
  ExprSets sets(segment.exprs().size());
  IdVector<ValueId, ExprId> reader(segment.values().size(), kNoExpr);  // the last reader so far
  std::vector<ExprId> computed;
  const IdVector<ExprId, bool> copied = copiedExprs(segment);
  for (ExprId id : segment.exprs().ids()) {
    if (copied[id]) continue;
    computed.push_back(id);
    for (ValueId input : segment.expr(id).inputs) {
      const Value& value = segment.value(input);
      const ExprId definition = value.definition;
      if (value.is_scalar ||
          (definition == kNoExpr ? value.tensor.rank() == 0 : copied[definition])) {
        continue;
      }
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
