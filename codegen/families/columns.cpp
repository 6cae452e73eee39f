#include "codegen/families/columns.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "codegen/families/segment_parts.h"
#include "codegen/plan/space.h"
#include "ir/analysis/kernel_rules.h"

namespace heddle::codegen {
namespace {

// Returns, for each value, whether it is the result of one of `reductions` or depends on such a
// result.
IdVector<ValueId, bool> dependents(const Fusion& segment, const std::vector<ExprId>& reductions) {
  IdVector<ValueId, bool> found(segment.values().size(), false);
  for (ExprId id : segment.exprs().ids()) {
    const Expression& expr = segment.expr(id);
    found[expr.outputs[0]] =
        std::binary_search(reductions.begin(), reductions.end(), id) ||
        std::any_of(expr.inputs.begin(), expr.inputs.end(), [&](ValueId in) { return found[in]; });
  }
  return found;
}

class ColumnDivider {
 public:
  ColumnDivider(const Fusion& segment, const Analysis& analysis, const AxisExtents& extents,
                const std::vector<ExprId>& columns)
      : segment_(segment),
        columns_(columns),
        analysis_(analysis),
        parts_(segment, analysis, extents),
        of_columns_(dependents(segment, columns)),
        of_rows_(dependents(segment, rowReductions())) {}

  RowPart rows() {
    RowPart part;
    part.sweep = parts_.part(outputs(false), columnOperands());
    part.operands = parts_.temporaries();
    return part;
  }

  // The outputs that do not depend on column reductions come last. If the first sweep has stored
  // such an output as a temporary, a separate sweep copies the temporary to the output.
  Sweeps sweeps() {
    Sweeps sweeps;
    const std::vector<ValueId> shared = sharedRowValues();
    if (!shared.empty()) sweeps.segments.push_back(parts_.part({}, shared));
    parts_.keep();
    sweeps.segments.push_back(parts_.part(outputs(true), {}));
    std::vector<ValueId> kept = outputs(false);
    const auto computed = std::stable_partition(kept.begin(), kept.end(),
                                                [&](ValueId id) { return parts_.isKept(id); });
    if (computed != kept.end()) sweeps.segments.push_back(parts_.part({computed, kept.end()}, {}));
    for (auto id = kept.begin(); id != computed; ++id) {
      sweeps.segments.push_back(parts_.part({*id}, {}));
    }
    sweeps.temporaries = parts_.temporaries();
    sweeps.temporary_values = parts_.temporaryValues();
    return sweeps;
  }

 private:
  std::vector<ExprId> rowReductions() const {
    std::vector<ExprId> found;
    std::set_difference(analysis_.reductions.begin(), analysis_.reductions.end(), columns_.begin(),
                        columns_.end(), std::back_inserter(found));
    return found;
  }

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

  // Returns the values per row that depend on a reduction of rows, and on which the column
  // reductions depend directly or through values along the row.
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

  // Returns whether the value has exactly the axes that the column reductions reduce. Such a value
  // has one element per row.
  bool isPerRow(ValueId id) const {
    IdVector<AxisId, bool> kept(analysis_.reduced.size(), true);
    for (AxisId axis : analysis_.axes[segment_.expr(columns_.front()).outputs[0]]) {
      if (axis.valid()) kept[axis] = false;
    }
    int64_t own = 0;
    for (AxisId axis : analysis_.axes[id]) {
      if (!axis.valid()) continue;
      if (!kept[axis]) return false;
      ++own;
    }
    return own == std::count(kept.begin(), kept.end(), true);
  }

  const Fusion& segment_;
  const std::vector<ExprId>& columns_;
  const Analysis& analysis_;
  SegmentParts parts_;
  const IdVector<ValueId, bool> of_columns_;
  const IdVector<ValueId, bool> of_rows_;
};

}  // namespace

std::vector<ExprId> columnReductionsOf(const Fusion& segment, const Analysis& analysis) {
  const auto axesOf = [&](ExprId id) { return analysis.axes[segment.expr(id).outputs[0]]; };
  std::set<std::set<AxisId>> kept;  // per reduction: the axes of the result
  for (ExprId id : analysis.reductions) {
    const std::vector<AxisId> axes = axesOf(id);
    std::set<AxisId> own(axes.begin(), axes.end());
    own.erase(AxisId());
    kept.insert(std::move(own));
  }
  return kept.size() > 1 ? columnReductions(segment) : std::vector<ExprId>();
}

RowPart rowPart(const Fusion& segment, const Analysis& analysis, const AxisExtents& extents,
                const std::vector<ExprId>& columns) {
  return ColumnDivider(segment, analysis, extents, columns).rows();
}

void markColumns(Space& space, const SweepSegment& sweep,
                 const IdVector<AccumulatorId, Accumulator>& accumulators) {
  for (SpaceTensor& tensor : space.tensors) {
    if (!tensor.output) continue;
    const size_t output = static_cast<size_t>(tensor.operand) - sweep.inputs.size();
    tensor.column = sweep.outputs[output].temporary;
    if (tensor.column < 0) continue;
    tensor.dtype = accumulators[AccumulatorId(tensor.column)].type;
    std::fill(tensor.strides.begin(), tensor.strides.end(), 0);
    tensor.strides.back() = 1;
    tensor.part_stride = space.extents.back();
  }
}

Analysis columnAnalysis(const Fusion& segment, const Analysis& analysis,
                        const std::vector<ExprId>& columns) {
  Analysis result = analysis;
  result.reductions = columns;
  result.reduced.assign(analysis.reduced.size(), true);
  for (AxisId axis : analysis.axes[segment.expr(columns.front()).outputs[0]]) {
    if (axis.valid()) result.reduced[axis] = false;
  }
  return result;
}

Computation finishColumns(const Fusion& segment, const Analysis& columns, const Space& space) {
  const IdVector<ValueId, bool> of_columns = dependents(segment, columns.reductions);
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

Sweeps columnSweeps(const Fusion& segment, const Analysis& analysis, const AxisExtents& extents,
                    const std::vector<ExprId>& columns) {
  return ColumnDivider(segment, analysis, extents, columns).sweeps();
}

}  // namespace heddle::codegen
