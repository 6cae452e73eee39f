#include "codegen/families/sweeps.h"

#include <algorithm>
#include <set>

#include "codegen/families/rows/row_values.h"
#include "codegen/families/segment_parts.h"

namespace heddle::codegen {
namespace {

class Divider {
 public:
  Divider(const Fusion& segment, const Analysis& analysis, const AxisExtents& extents)
      : segment_(segment),
        analysis_(analysis),
        parts_(segment, analysis, extents),
        values_(rowValuesOf(segment, analysis)) {}

  // Creates the segments of the reductions first. The segment of a reduction also computes the
  // values per row that depend on it, so that later sweeps need not compute them for each element.
  // The segment stores the outputs among these values (computedWith()). Then come the segments of
  // outputs along the row, and last the segments of all remaining outputs. No segment reads an
  // input whose memory an earlier segment has overwritten.
  Sweeps run() {
    Sweeps sweeps;
    std::set<ValueId> stored;  // outputs of earlier segments
    for (const std::vector<ExprId>& reductions : values_.reductions) {
      std::vector<ValueId> results;
      for (ExprId id : reductions) results.push_back(segment_.expr(id).outputs[0]);
      for (const JointReductions& pair : analysis_.joint) {
        if (std::find(reductions.begin(), reductions.end(), pair.first) == reductions.end())
          continue;
        results.push_back(segment_.expr(pair.second).outputs[0]);
      }
      for (const std::vector<ValueId>& list : connected(results)) {
        const Finished finished = finish(list);
        sweeps.segments.push_back(parts_.part(finished.outputs, finished.temporaries));
        stored.insert(finished.outputs.begin(), finished.outputs.end());
      }
      parts_.keep();
    }
    for (bool per_row : {false, true}) {
      std::vector<ValueId> outputs;
      for (ValueId id : segment_.outputs()) {
        if (values_.per_row[id] == per_row && !stored.contains(id)) outputs.push_back(id);
      }
      for (const std::vector<ValueId>& list : connected(outputs)) {
        sweeps.segments.push_back(parts_.part(list, {}));
      }
    }
    sweeps.temporaries = parts_.temporaries();
    sweeps.temporary_values = parts_.temporaryValues();
    return sweeps;
  }

 private:
  // What the segment of some reductions stores.
  struct Finished {
    std::vector<ValueId> outputs;      // outputs of the complete segment
    std::vector<ValueId> temporaries;  // values that later segments read
  };

  // Returns what the segment of the reductions `results` stores.
  Finished finish(const std::vector<ValueId>& results) const {
    const IdVector<ValueId, bool> own = computedWith(results);
    const IdVector<ValueId, bool> read = readLater(own);
    Finished finished;
    for (ValueId id : segment_.outputs()) {
      if (own[id]) finished.outputs.push_back(id);
    }
    for (const ValueId id : segment_.values().ids()) {
      if (own[id] && read[id]) finished.temporaries.push_back(id);
    }
    return finished;
  }

  // Returns which values the segment of the reductions `results` computes: the results, and values
  // per row that depend on them. If such a value also depends on a reduction of another segment,
  // the result of this reduction must already be kept (SegmentParts::keep()). Exception: if later
  // segments read an input with one element per row, the last segments compute all values that
  // depend on this input without a reduction in between, and connected() puts these values into one
  // list. The reason is that one of them may be an output with the memory of the input.
  IdVector<ValueId, bool> computedWith(const std::vector<ValueId>& results) const {
    IdVector<ValueId, bool> left(segment_.values().size(), false);
    for (;;) {
      const IdVector<ValueId, bool> own = dependents(results, left);
      const IdVector<ValueId, bool> shared = readInputs(readLater(own));
      bool changed = false;
      for (const Expression& expr : segment_.exprs()) {
        const ValueId result = expr.outputs[0];
        if (!own[result] || expr.op->kind == OpKind::Reduction || left[result]) continue;
        left[result] = shared[result];
        changed = changed || left[result];
      }
      if (!changed) return own;
    }
  }

  // Returns `results` and the values per row that depend on them, as computedWith() describes. The
  // values in `left` are left out.
  IdVector<ValueId, bool> dependents(const std::vector<ValueId>& results,
                                     const IdVector<ValueId, bool>& left) const {
    IdVector<ValueId, bool> own(segment_.values().size(), false);
    for (ValueId id : results) own[id] = true;
    for (const Expression& expr : segment_.exprs()) {
      const ValueId result = expr.outputs[0];
      if (expr.op->kind == OpKind::Reduction || !values_.per_row[result] || left[result]) continue;
      const auto is_known = [&](ValueId input) {
        return own[input] || parts_.isKept(input) ||
               (values_.per_row[input] && values_.level[input] == 0);
      };
      own[result] = std::ranges::all_of(expr.inputs, is_known) &&
                    std::ranges::any_of(expr.inputs, [&](ValueId input) { return own[input]; });
    }
    return own;
  }

  // Returns which values later segments need, if they read the values in `own` as temporaries.
  IdVector<ValueId, bool> readLater(const IdVector<ValueId, bool>& own) const {
    IdVector<ValueId, bool> read(segment_.values().size(), false);
    for (ValueId id : segment_.outputs()) read[id] = !own[id];
    for (ExprId id : segment_.exprs().ids().reversed()) {
      const Expression& expr = segment_.expr(id);
      if (own[expr.outputs[0]] || !read[expr.outputs[0]]) continue;
      for (ValueId input : expr.inputs) read[input] = true;
    }
    return read;
  }

  // Returns which values depend on an input with one element per row that is in `read`, without a
  // reduction in between.
  IdVector<ValueId, bool> readInputs(const IdVector<ValueId, bool>& read) const {
    IdVector<ValueId, bool> depends(segment_.values().size(), false);
    for (ValueId id : segment_.inputs()) depends[id] = read[id] && values_.per_row[id];
    for (const Expression& expr : segment_.exprs()) {
      if (expr.op->kind == OpKind::Reduction) continue;
      depends[expr.outputs[0]] =
          std::ranges::any_of(expr.inputs, [&](ValueId input) { return depends[input]; });
    }
    return depends;
  }

  // Returns whether the value has all kept axes (if `per_row` is true), or all axes of the space.
  bool hasAllAxes(ValueId id, bool per_row) const {
    const std::vector<AxisId>& axes = analysis_.axes[id];
    const auto own =
        std::count_if(axes.begin(), axes.end(), [](AxisId axis) { return axis.valid(); });
    const auto& reduced = analysis_.reduced;
    return own == std::count(reduced.begin(), reduced.end(), false) +
                      (per_row ? 0 : std::count(reduced.begin(), reduced.end(), true));
  }

  // Groups values into lists. Each list becomes one segment, which must have one iteration space.
  // The axes of two values may be unrelated until a later sweep relates them. Two values are
  // therefore in the same list if both depend on the same value with all axes (hasAllAxes()), and
  // in different lists if no chain of such values connects them. The outputs of one list may be
  // stored before another list is launched. This overwrites no input of the other list: an output
  // can have the memory of an input only if no output of another list depends on this input
  // (codegen/plan/in_place.h).
  std::vector<std::vector<ValueId>> connected(const std::vector<ValueId>& values) const {
    std::vector<std::vector<ValueId>> lists;
    std::vector<std::set<ValueId>> read;  // per list: the values with all axes on which it depends
    for (ValueId value : values) {
      const SegmentParts::Needed needed = parts_.neededFor({value});
      const bool reduction = isReduction(value);
      const bool per_row = values_.per_row[value] && !reduction;
      std::set<ValueId> mine;
      const auto add = [&](ValueId id) {
        if (hasAllAxes(id, per_row)) mine.insert(id);
      };
      for (ValueId id : needed.inputs) add(id);
      for (ExprId id : needed.exprs) add(segment_.expr(id).outputs[0]);
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
    return !parts_.isKept(id) && definition != kNoExpr &&
           segment_.expr(definition).op->kind == OpKind::Reduction;
  }

  const Fusion& segment_;
  const Analysis& analysis_;
  SegmentParts parts_;
  const RowValues values_;
};

}  // namespace

Sweeps divideIntoSweeps(const Fusion& segment, const Analysis& analysis,
                        const AxisExtents& extents) {
  return Divider(segment, analysis, extents).run();
}

SweepSegment sweepOf(const SegmentPart& part) {
  SweepSegment sweep;
  for (size_t i = 0; i < part.operands.size(); ++i) {
    const bool is_input = i < part.segment.inputs().size();
    (is_input ? sweep.inputs : sweep.outputs).push_back({part.operands[i], -1});
  }
  return sweep;
}

Operands operandsOf(const SweepSegment& sweep, const Operands& all,
                    const std::vector<TensorDesc>& temporaries) {
  Operands of;
  const auto add = [&](const SweepSegment::Operand& operand, std::vector<TensorDesc>& descs) {
    if (operand.temporary >= 0) {
      descs.push_back(temporaries[static_cast<size_t>(operand.temporary)]);
      of.alignments.push_back(kFullAlignment);
      return;
    }
    const auto i = static_cast<size_t>(operand.operand);
    descs.push_back(i < all.inputs.size() ? all.inputs[i] : all.outputs[i - all.inputs.size()]);
    of.alignments.push_back(all.alignmentOf(operand.operand));
  };
  for (const SweepSegment::Operand& operand : sweep.inputs) add(operand, of.inputs);
  for (const SweepSegment::Operand& operand : sweep.outputs) add(operand, of.outputs);
  return of;
}

void appendSweep(KernelPlan& plan, const SweepSegment& sweep,
                 const std::vector<int64_t>& temporary_offsets, KernelPlan part) {
  plan.source.text += part.source.text;
  for (LaunchStage& stage : part.stages) {
    for (LaunchStage::PointerPatch& patch : stage.pointers) {
      if (patch.operand == LaunchStage::kWorkspace) continue;
      if (patch.operand == LaunchStage::kCounters) continue;
      const SweepSegment::Operand& operand = operandOf(sweep, patch.operand);
      patch.operand = operand.temporary < 0 ? operand.operand : LaunchStage::kWorkspace;
      if (operand.temporary >= 0)
        patch.workspace_offset = temporary_offsets[static_cast<size_t>(operand.temporary)];
    }
    for (LaunchStage::ScalarPatch& patch : stage.scalars) {
      patch.operand = operandOf(sweep, patch.operand).operand;
    }
    plan.stages.push_back(std::move(stage));
  }
}

}  // namespace heddle::codegen
