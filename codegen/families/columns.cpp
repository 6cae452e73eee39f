#include "codegen/families/columns.h"

#include <algorithm>
#include <map>
#include <set>

#include "codegen/plan/space.h"
#include "ir/analysis/kernel_rules.h"
#include "ir/graph/rewrite.h"

namespace heddle::codegen {
namespace {

class ColumnDivider {
 public:
  ColumnDivider(const Fusion& segment, const std::vector<ExprId>& columns,
                const std::vector<TensorDesc>& inputs, const std::vector<TensorDesc>& outputs)
      : segment_(segment),
        columns_(columns),
        analysis_(analyze(segment)),
        extents_(axisExtents(segment, analysis_, inputs, outputs)),
        of_columns_(segment.values().size(), false),
        of_rows_(segment.values().size(), false) {
    for (ExprId id : segment.exprs().ids()) {
      const Expression& expr = segment.expr(id);
      const bool column = std::binary_search(columns.begin(), columns.end(), id);
      const bool row = expr.op->kind == OpKind::Reduction && !column;
      of_columns_[expr.outputs[0]] = column || dependsOn(of_columns_, expr);
      of_rows_[expr.outputs[0]] = row || dependsOn(of_rows_, expr);
    }
  }

  RowPart rows() {
    RowPart part;
    for (ValueId operand : columnOperands()) part.operands.push_back(descOf(operand));
    part.pass = partFor(rowOutputs(), columnOperands());
    return part;
  }

  Passes passes() {
    Passes passes;
    const std::vector<ValueId> shared = sharedRowValues();
    if (!shared.empty()) passes.segments.push_back(partFor({}, shared));
    for (ValueId id : shared) {
      temporaries_.emplace(id, static_cast<int>(passes.temporaries.size()));
      passes.temporaries.push_back(descOf(id));
    }
    passes.segments.push_back(partFor(columnOutputs(), {}));
    std::vector<ValueId> outputs = rowOutputs();
    std::erase_if(outputs, [this](ValueId id) { return temporaries_.contains(id); });
    if (!outputs.empty()) passes.segments.push_back(partFor(outputs, {}));
    for (ValueId id : rowOutputs()) {
      if (temporaries_.contains(id)) passes.segments.push_back(copyOf(id));
    }
    return passes;
  }

 private:
  bool dependsOn(const IdVector<ValueId, bool>& flags, const Expression& expr) const {
    return std::any_of(expr.inputs.begin(), expr.inputs.end(),
                       [&](ValueId input) { return flags[input]; });
  }

  std::vector<ValueId> columnOutputs() const { return outputs(true); }
  std::vector<ValueId> rowOutputs() const { return outputs(false); }
  std::vector<ValueId> outputs(bool of_columns) const {
    std::vector<ValueId> found;
    for (ValueId id : segment_.outputs()) {
      if (of_columns_[id] == of_columns) found.push_back(id);
    }
    return found;
  }

  std::vector<ValueId> columnOperands() const {
    std::vector<ValueId> operands;
    for (ExprId id : columns_) operands.push_back(segment_.expr(id).inputs[0]);
    return operands;
  }

  // The expressions that compute `wanted`, and the values that they read but do not compute.
  struct Part {
    std::vector<ExprId> exprs;
    std::vector<ValueId> inputs;
  };

  Part need(const std::vector<ValueId>& wanted) const {
    IdVector<ValueId, bool> needed(segment_.values().size(), false);
    for (ValueId id : wanted) needed[id] = true;
    Part part;
    for (ExprId id : segment_.exprs().ids().reversed()) {
      const Expression& expr = segment_.expr(id);
      const ValueId result = expr.outputs[0];
      if (!needed[result] || temporaries_.contains(result)) continue;
      part.exprs.push_back(id);
      for (ValueId input : expr.inputs) needed[input] = true;
    }
    std::reverse(part.exprs.begin(), part.exprs.end());
    for (ValueId id : segment_.inputs()) {
      if (needed[id] && !temporaries_.contains(id)) part.inputs.push_back(id);
    }
    for (const auto& [id, temporary] : temporaries_) {
      if (needed[id]) part.inputs.push_back(id);
    }
    return part;
  }

  // The last values without the axes of the rows that depend on reductions of rows and on which
  // column reductions depend.
  std::vector<ValueId> sharedRowValues() const {
    IdVector<ValueId, bool> needed(segment_.values().size(), false);
    for (ValueId id : columnOperands()) needed[id] = true;
    std::vector<ValueId> found;
    for (ExprId id : segment_.exprs().ids().reversed()) {
      const Expression& expr = segment_.expr(id);
      const ValueId result = expr.outputs[0];
      if (!needed[result] || !of_rows_[result]) continue;
      if (isPerRow(result)) {
        found.push_back(result);
        continue;
      }
      for (ValueId input : expr.inputs) needed[input] = true;
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  // Returns whether the value has exactly the axes that the column reductions reduce.
  bool isPerRow(ValueId id) const {
    std::vector<bool> kept(analysis_.reduced.size(), true);
    for (int axis : analysis_.axes[segment_.expr(columns_.front()).outputs[0]]) {
      if (axis >= 0) kept[static_cast<size_t>(axis)] = false;
    }
    int64_t own = 0;
    for (int axis : analysis_.axes[id]) {
      if (axis < 0) continue;
      if (!kept[static_cast<size_t>(axis)]) return false;
      ++own;
    }
    return own == std::count(kept.begin(), kept.end(), true);
  }

  // Writes a segment that computes `outputs` and stores `extra` as temporaries 0, 1, ...
  PassSegment partFor(const std::vector<ValueId>& outputs,
                      const std::vector<ValueId>& extra) const {
    std::vector<ValueId> wanted = outputs;
    wanted.insert(wanted.end(), extra.begin(), extra.end());
    const Part part = need(wanted);
    std::vector<ValueId> all = part.inputs;
    for (ExprId id : part.exprs) {
      const Expression& expr = segment_.expr(id);
      all.insert(all.end(), expr.inputs.begin(), expr.inputs.end());
      all.insert(all.end(), expr.outputs.begin(), expr.outputs.end());
    }
    FusionRewriter rewriter(segment_, segment_.name, all);
    for (ValueId id : part.inputs) rewriter.input(id);
    for (ExprId id : part.exprs) rewriter.copy(id);
    PassSegment pass;
    for (ValueId id : outputs) {
      rewriter.output(id);
      pass.outputs.push_back({positionOf(id), -1});
    }
    for (size_t i = 0; i < extra.size(); ++i) {
      const std::string& name = segment_.value(extra[i]).name;
      rewriter.builder().output(rewriter.set(rewriter.at(extra[i]), name, 0));
      pass.outputs.push_back({-1, static_cast<int>(i)});
    }
    pass.segment = std::move(rewriter).finishPart();
    for (ValueId id : part.inputs) pass.inputs.push_back(operandOf(id));
    return pass;
  }

  // Writes a segment that copies a temporary to the output.
  PassSegment copyOf(ValueId output) const {
    FusionRewriter rewriter(segment_, segment_.name, {output});
    rewriter.input(output);
    rewriter.builder().output(rewriter.set(rewriter.at(output), segment_.value(output).name, 0));
    PassSegment pass{std::move(rewriter).finishPart(), {}, {}};
    pass.inputs.push_back(operandOf(output));
    pass.outputs.push_back({positionOf(output), -1});
    return pass;
  }

  PassSegment::Operand operandOf(ValueId id) const {
    const auto found = temporaries_.find(id);
    if (found != temporaries_.end()) return {-1, found->second};
    const std::vector<ValueId>& inputs = segment_.inputs();
    return {static_cast<int>(std::find(inputs.begin(), inputs.end(), id) - inputs.begin()), -1};
  }

  int positionOf(ValueId output) const {
    const std::vector<ValueId>& all = segment_.outputs();
    const auto position = std::find(all.begin(), all.end(), output) - all.begin();
    return static_cast<int>(segment_.inputs().size()) + static_cast<int>(position);
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

  const Fusion& segment_;
  const std::vector<ExprId>& columns_;
  const Analysis analysis_;
  const AxisExtents extents_;
  IdVector<ValueId, bool> of_columns_;
  IdVector<ValueId, bool> of_rows_;
  std::map<ValueId, int> temporaries_;  // values that a part reads and does not compute
};

}  // namespace

std::vector<ExprId> columnReductionsOf(const Fusion& segment, const Analysis& analysis) {
  const auto axesOf = [&](ExprId id) { return analysis.axes[segment.expr(id).outputs[0]]; };
  std::set<std::set<int>> kept;  // per reduction: the axes of the result
  for (ExprId id : analysis.reductions) {
    const std::vector<int> axes = axesOf(id);
    std::set<int> own(axes.begin(), axes.end());
    own.erase(-1);
    kept.insert(std::move(own));
  }
  return kept.size() > 1 ? columnReductions(segment) : std::vector<ExprId>();
}

RowPart rowPart(const Fusion& segment, const std::vector<ExprId>& columns,
                const std::vector<TensorDesc>& inputs, const std::vector<TensorDesc>& outputs) {
  return ColumnDivider(segment, columns, inputs, outputs).rows();
}

Analysis columnAnalysis(const Fusion& segment, const Analysis& analysis,
                        const std::vector<ExprId>& columns) {
  Analysis result = analysis;
  result.reductions = columns;
  result.reduced.assign(analysis.reduced.size(), true);
  for (int axis : analysis.axes[segment.expr(columns.front()).outputs[0]]) {
    if (axis >= 0) result.reduced[static_cast<size_t>(axis)] = false;
  }
  return result;
}

Computation finishColumns(const Fusion& segment, const Analysis& columns, const Space& space) {
  IdVector<ValueId, bool> of_columns(segment.values().size(), false);
  for (ExprId id : segment.exprs().ids()) {
    const Expression& expr = segment.expr(id);
    const auto depends = [&](ValueId input) { return of_columns[input]; };
    of_columns[expr.outputs[0]] =
        std::binary_search(columns.reductions.begin(), columns.reductions.end(), id) ||
        std::any_of(expr.inputs.begin(), expr.inputs.end(), depends);
  }
  std::vector<ValueId> outputs;
  for (ValueId id : segment.outputs()) {
    if (of_columns[id]) outputs.push_back(id);
  }
  const std::vector<int> tensor_of = tensorsOfOperands(segment, space);
  WrittenBody written =
      writeBody(segment, columns, space, outputs, [&](ValueId id) -> std::optional<Leaf> {
        std::optional<Node> node = inputNode(segment, tensor_of, id);
        return node ? Leaf(std::move(*node)) : resultNode(segment, columns, id);
      });
  for (size_t i = 0; i < segment.outputs().size(); ++i) {
    const ValueId id = segment.outputs()[i];
    if (!of_columns[id]) continue;
    written.body.stores.push_back({written.node_of[id], tensor_of[segment.inputs().size() + i]});
  }
  Computation computation;
  for (ExprId id : columns.reductions) {
    computation.accumulators.push_back(makeAccumulator(segment, columns, id));
  }
  computation.finish = std::move(written.body);
  return computation;
}

Passes columnPasses(const Fusion& segment, const std::vector<ExprId>& columns,
                    const std::vector<TensorDesc>& inputs, const std::vector<TensorDesc>& outputs) {
  return ColumnDivider(segment, columns, inputs, outputs).passes();
}

}  // namespace heddle::codegen
