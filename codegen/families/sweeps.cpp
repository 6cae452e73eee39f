#include "codegen/families/sweeps.h"

#include <algorithm>
#include <set>

#include "codegen/families/row_values.h"
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

  // Creates the segments of the reductions first, then the segments of outputs along the row, and
  // last the segments of outputs with one element per row. No segment then reads an input whose
  // memory an earlier segment has overwritten.
  Sweeps run() {
    Sweeps sweeps;
    for (const std::vector<ExprId>& reductions : values_.reductions) {
      std::vector<ValueId> results;
      for (ExprId id : reductions) results.push_back(segment_.expr(id).outputs[0]);
      for (const JointReductions& pair : analysis_.joint) {
        if (std::find(reductions.begin(), reductions.end(), pair.first) == reductions.end())
          continue;
        results.push_back(segment_.expr(pair.second).outputs[0]);
      }
      for (const std::vector<ValueId>& list : connected(results)) {
        sweeps.segments.push_back(parts_.part({}, list));
      }
      parts_.keep();
    }
    for (bool per_row : {false, true}) {
      std::vector<ValueId> outputs;
      for (ValueId id : segment_.outputs()) {
        if (values_.per_row[id] == per_row) outputs.push_back(id);
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
  // Returns whether the value has all kept axes (if `per_row` is true), or all axes of the space.
  bool hasAllAxes(ValueId id, bool per_row) const {
    const std::vector<AxisId>& axes = analysis_.axes[id];
    const auto own =
        std::count_if(axes.begin(), axes.end(), [](AxisId axis) { return axis.valid(); });
    const auto& reduced = analysis_.reduced;
    return own == std::count(reduced.begin(), reduced.end(), false) +
                      (per_row ? 0 : std::count(reduced.begin(), reduced.end(), true));
  }

  // Groups values into lists. Each list becomes one segment. Two values are in the same list if
  // both depend on the same value with all axes (hasAllAxes()). Values of different lists may have
  // unrelated axes, because only a later sweep relates these axes. The outputs of one list may be
  // stored before another list is launched. This overwrites no input of the other list. The reason:
  // an output can have the memory of an input only if both have all axes. Two lists have no input
  // with all axes in common.
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
