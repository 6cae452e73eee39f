#include "codegen/families/passes.h"

#include <algorithm>
#include <map>
#include <set>

#include "codegen/families/row_values.h"
#include "codegen/plan/space.h"
#include "ir/graph/rewrite.h"

namespace heddle::codegen {
namespace {

class Divider {
 public:
  Divider(const Fusion& segment, const Analysis& analysis, AxisExtents extents)
      : segment_(segment),
        analysis_(analysis),
        extents_(std::move(extents)),
        values_(rowValuesOf(segment, analysis)) {}

  // The outputs come last, those with one element per row after all others. A later launch then
  // reads no input whose memory an output has.
  Passes run() {
    for (const std::vector<ExprId>& reductions : values_.reductions) {
      std::vector<ValueId> results;
      for (ExprId id : reductions) results.push_back(segment_.expr(id).outputs[0]);
      for (const JointReductions& pair : analysis_.joint) {
        if (std::find(reductions.begin(), reductions.end(), pair.first) == reductions.end())
          continue;
        results.push_back(segment_.expr(pair.second).outputs[0]);
      }
      std::map<ValueId, int> made;
      for (const std::vector<ValueId>& part : connected(results)) addReductions(part, made);
      temporaries_.merge(made);
    }
    for (bool per_row : {false, true}) {
      std::vector<ValueId> outputs;
      for (ValueId id : segment_.outputs()) {
        if (values_.per_row[id] == per_row) outputs.push_back(id);
      }
      for (const std::vector<ValueId>& part : connected(outputs)) addOutputs(part);
    }
    return std::move(passes_);
  }

 private:
  // The expressions that compute `wanted`, and the values that they read but do not compute.
  struct Part {
    std::vector<ExprId> exprs;
    std::vector<ValueId> inputs;
  };

  bool isStored(ValueId id) const { return temporaries_.contains(id); }

  Part partOf(const std::vector<ValueId>& wanted) const {
    IdVector<ValueId, bool> needed(segment_.values().size(), false);
    for (ValueId id : wanted) needed[id] = true;
    Part part;
    for (ExprId id : segment_.exprs().ids().reversed()) {
      const Expression& expr = segment_.expr(id);
      if (!needed[expr.outputs[0]] || isStored(expr.outputs[0])) continue;
      part.exprs.push_back(id);
      for (ValueId input : expr.inputs) needed[input] = true;
    }
    std::reverse(part.exprs.begin(), part.exprs.end());
    for (ValueId id : segment_.inputs()) {
      if (needed[id]) part.inputs.push_back(id);
    }
    for (const auto& [id, temporary] : temporaries_) {
      if (needed[id]) part.inputs.push_back(id);
    }
    return part;
  }

  // Returns whether the value has all axes of the rows (`per_row`), or all axes.
  bool hasAllAxes(ValueId id, bool per_row) const {
    const std::vector<int>& axes = analysis_.axes[id];
    const auto own = std::count_if(axes.begin(), axes.end(), [](int axis) { return axis >= 0; });
    const auto& reduced = analysis_.reduced;
    return own == std::count(reduced.begin(), reduced.end(), false) +
                      (per_row ? 0 : std::count(reduced.begin(), reduced.end(), true));
  }

  // Splits values into lists that one launch each can compute. Two values are in one list if both
  // depend on a value with all axes. Other values of a pass may have unrelated axes, because only
  // a later pass relates them. An output can have the memory of an input only if both have all
  // axes. Two lists have no such input in common, so the launch of one list may store its output
  // before the launch of the other list.
  std::vector<std::vector<ValueId>> connected(const std::vector<ValueId>& values) const {
    std::vector<std::vector<ValueId>> lists;
    std::vector<std::set<ValueId>> read;  // per list: the values with all axes
    for (ValueId value : values) {
      const Part part = partOf({value});
      const bool reduction = isReduction(value);
      const bool per_row = values_.per_row[value] && !reduction;
      std::set<ValueId> mine;
      const auto add = [&](ValueId id) {
        if (hasAllAxes(id, per_row)) mine.insert(id);
      };
      for (ValueId id : part.inputs) add(id);
      for (ExprId id : part.exprs) add(segment_.expr(id).outputs[0]);
      std::vector<ValueId> list{value};
      for (size_t i = lists.size(); i-- > 0;) {
        const bool common = std::any_of(read[i].begin(), read[i].end(),
                                        [&](ValueId id) { return mine.contains(id); });
        if (!common) continue;
        list.insert(list.begin(), lists[i].begin(), lists[i].end());
        mine.merge(read[i]);
        lists.erase(lists.begin() + static_cast<ptrdiff_t>(i));
        read.erase(read.begin() + static_cast<ptrdiff_t>(i));
      }
      lists.push_back(std::move(list));
      read.push_back(std::move(mine));
    }
    return lists;
  }

  bool isReduction(ValueId id) const {
    const ExprId definition = segment_.value(id).definition;
    return !isStored(id) && definition != kNoExpr &&
           segment_.expr(definition).op->kind == OpKind::Reduction;
  }

  FusionRewriter rewriterFor(const Part& part) const {
    std::vector<ValueId> all = part.inputs;
    for (ExprId id : part.exprs) {
      const Expression& expr = segment_.expr(id);
      all.insert(all.end(), expr.inputs.begin(), expr.inputs.end());
      all.insert(all.end(), expr.outputs.begin(), expr.outputs.end());
    }
    FusionRewriter rewriter(segment_, segment_.name, all);
    for (ValueId id : part.inputs) rewriter.input(id);
    for (ExprId id : part.exprs) rewriter.copy(id);
    return rewriter;
  }

  PassSegment::Operand operandOf(ValueId id) const {
    const auto found = temporaries_.find(id);
    if (found != temporaries_.end()) return {-1, found->second};
    const std::vector<ValueId>& inputs = segment_.inputs();
    return {static_cast<int>(std::find(inputs.begin(), inputs.end(), id) - inputs.begin()), -1};
  }

  void add(FusionRewriter rewriter, const Part& part, std::vector<PassSegment::Operand> outputs) {
    PassSegment pass{std::move(rewriter).finishPart(), {}, std::move(outputs)};
    for (ValueId id : part.inputs) pass.inputs.push_back(operandOf(id));
    passes_.segments.push_back(std::move(pass));
  }

  TensorDesc descOf(ValueId id) const {
    std::vector<int64_t> sizes;
    std::vector<int64_t> offsets;
    for (int axis : analysis_.axes[id]) {
      const auto a = static_cast<size_t>(axis);
      sizes.push_back(axis < 0 ? 1 : extents_.extents[a]);
      offsets.push_back(axis < 0 ? 0 : extents_.offsets[a]);
    }
    TensorDesc desc = denseDesc(segment_.tensor(id).dtype, std::move(sizes));
    desc.offset = std::move(offsets);
    return desc;
  }

  void addReductions(const std::vector<ValueId>& results, std::map<ValueId, int>& made) {
    const Part part = partOf(results);
    FusionRewriter rewriter = rewriterFor(part);
    std::vector<PassSegment::Operand> outputs;
    for (ValueId id : results) {
      rewriter.output(id);
      made[id] = static_cast<int>(passes_.temporaries.size());
      outputs.push_back({-1, made[id]});
      passes_.temporaries.push_back(descOf(id));
    }
    add(std::move(rewriter), part, std::move(outputs));
  }

  void addOutputs(const std::vector<ValueId>& wanted) {
    const Part part = partOf(wanted);
    FusionRewriter rewriter = rewriterFor(part);
    std::vector<PassSegment::Operand> outputs;
    for (ValueId id : wanted) {
      // An output of a segment is no input of it: a copy of the temporary is the output.
      if (isStored(id)) {
        const ValueId copy = rewriter.set(rewriter.at(id), segment_.value(id).name, 0);
        rewriter.fusion().mutableValue(copy).tensor.sharding = segment_.tensor(id).sharding;
        rewriter.stand(id, copy);
      }
      rewriter.output(id);
      const std::vector<ValueId>& all = segment_.outputs();
      const auto position = std::find(all.begin(), all.end(), id) - all.begin();
      outputs.push_back({static_cast<int>(segment_.inputs().size()) + static_cast<int>(position)});
    }
    add(std::move(rewriter), part, std::move(outputs));
  }

  const Fusion& segment_;
  const Analysis& analysis_;
  const AxisExtents extents_;
  const RowValues values_;
  std::map<ValueId, int> temporaries_;  // results of reductions -> Passes::temporaries
  Passes passes_;
};

}  // namespace

Passes divideIntoPasses(const Fusion& segment, const Analysis& analysis,
                        const std::vector<TensorDesc>& inputs,
                        const std::vector<TensorDesc>& outputs) {
  return Divider(segment, analysis, axisExtents(segment, analysis, inputs, outputs)).run();
}

}  // namespace heddle::codegen
