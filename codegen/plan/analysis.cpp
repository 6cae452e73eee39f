#include "codegen/plan/analysis.h"

#include <algorithm>
#include <map>

#include "codegen/kernel.h"
#include "codegen/plan/generated.h"
#include "ir/analysis/axis_map.h"
#include "ir/analysis/indexed_axes.h"
#include "ir/analysis/kernel_rules.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

// Union-find over all axes of all tensors. The axes of one class are one axis of the space.
class AxisClasses {
 public:
  explicit AxisClasses(const Fusion& segment) {
    for (const Value& value : segment.values()) {
      first_.push_back(static_cast<int>(parent_.size()));
      size_t rank = value.is_scalar ? 0 : value.tensor.rank();
      for (size_t i = 0; i < rank; ++i) parent_.push_back(static_cast<int>(parent_.size()));
    }
  }
  int id(ValueId value, size_t axis) const { return first_[value] + static_cast<int>(axis); }
  int find(int a) {
    while (parent_[a] != a) {
      int& up = parent_[a];
      up = parent_[up];
      a = up;
    }
    return a;
  }
  void join(int a, int b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  IdVector<ValueId, int> first_;
  std::vector<int> parent_;
};

// Returns whether the axis maps to no axis of the space, because it is broadcast or has one
// element.
bool stretches(const Fusion& segment, ValueId value, size_t axis) {
  return isUnitAxis(segment.tensor(value), axis);
}

// `map` gives axes of the operands and results of `expr` that correspond to each other the same
// position in map.space (ir/analysis/axis_map.h). Calls visit(position, value, logical axis) for
// every axis that has a position. Exceptions: axes for which stretches() returns true, and operands
// that the op reads at computed indices.
template <class Visit>
void forMappedAxes(const Fusion& segment, const Expression& expr, const AxisMap& map,
                   Visit&& visit) {
  auto walk = [&](const std::vector<ValueId>& values, const std::vector<std::vector<int>>& maps) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (segment.value(values[i]).is_scalar) continue;
      if (&values == &expr.inputs && isIndexed(expr, i)) continue;
      for (size_t axis = 0; axis < maps[i].size(); ++axis) {
        if (maps[i][axis] == AxisMap::kNone || stretches(segment, values[i], axis)) continue;
        visit(static_cast<size_t>(maps[i][axis]), values[i], axis);
      }
    }
  };
  walk(expr.inputs, map.inputs);
  walk(expr.outputs, map.outputs);
}

class Analyzer {
 public:
  explicit Analyzer(const Fusion& segment) : segment_(segment), classes_(segment) {}

  // The order matters: some steps read what earlier steps have set.
  Analysis run() {
    joinAxes();
    markIndexed();
    numberAxes();
    listCoordinates();
    listReductions();
    markAfter();
    chooseStores();
    markRounded();
    return std::move(result_);
  }

 private:
  void joinAxes() {
    for (const Expression& expr : segment_.exprs()) {
      AxisMap map = axisMapOf(segment_, expr);
      std::vector<int> seen(map.space.size(), -1);
      forMappedAxes(segment_, expr, map, [&](size_t position, ValueId value, size_t axis) {
        int id = classes_.id(value, axis);
        if (seen[position] >= 0) classes_.join(seen[position], id);
        seen[position] = id;
        if (map.space[position].kind == IterKind::Reduction) reduced_ids_.push_back(id);
      });
    }
  }

  void markIndexed() {
    IdVector<ValueId, bool>& indexed_only = result_.indexed_only;
    indexed_only.assign(segment_.values().size(), false);
    result_.indexed_inputs = indexedInputs(segment_);
    for (ValueId id : result_.indexed_inputs) indexed_only[id] = true;
    for (const Expression& expr : segment_.exprs()) {
      const bool is_index = expr.op->kind == OpKind::Index;
      result_.indexed_axes.push_back(is_index ? indexedAxesOf(segment_, expr)
                                              : std::vector<IndexedAxis>{});
    }
    for (const Expression& expr : segment_.exprs()) {
      for (size_t i = 0; i < expr.inputs.size(); ++i) {
        if (!isIndexed(expr, i)) indexed_only[expr.inputs[i]] = false;
      }
    }
    for (ValueId id : segment_.outputs()) indexed_only[id] = false;
  }

  void numberAxes() {
    std::map<int, AxisId> numbers;
    for (ValueId v : segment_.values().ids()) {
      const Value& value = segment_.value(v);
      result_.axes.emplace_back();
      if (value.is_scalar) continue;
      for (size_t axis = 0; axis < value.tensor.rank(); ++axis) {
        if (stretches(segment_, v, axis) || result_.indexed_only[v]) {
          result_.axes.back().emplace_back();
          continue;
        }
        int root = classes_.find(classes_.id(v, axis));
        result_.axes.back().push_back(numbers.emplace(root, numbers.size()).first->second);
      }
    }
    result_.reduced.assign(numbers.size(), false);
    for (int id : reduced_ids_) result_.reduced[numbers.at(classes_.find(id))] = true;
  }

  void listCoordinates() {
    std::vector<AxisId>& needed = result_.coordinates;
    std::vector<AxisId>& shifted = result_.shifted;
    for (ExprId id : segment_.exprs().ids()) {
      const Expression& expr = segment_.expr(id);
      const std::vector<AxisId>& axes = result_.axes[expr.outputs[0]];
      if (expr.op->kind == OpKind::Iota) shifted.push_back(axes[expr.axis()]);
      if (result_.indexed_axes[id].empty()) continue;
      IndexedOp op{positionOfIndexed(expr.inputs[0]), {}};
      for (const IndexedAxis& indexed : result_.indexed_axes[id]) {
        op.same.emplace_back();
        if (indexed.output_axis == IndexedAxis::kByValue) continue;
        const AxisId axis = axes[indexed.output_axis];
        needed.push_back(axis);
        if (indexed.isSame()) {
          op.same.back() = axis;
        } else {
          shifted.push_back(axis);
        }
      }
      result_.indexed_ops.push_back(std::move(op));
    }
    needed.insert(needed.end(), shifted.begin(), shifted.end());
    sortValid(needed);
    sortValid(shifted);
  }

  size_t positionOfIndexed(ValueId input) const {
    const std::vector<ValueId>& all = result_.indexed_inputs;
    return static_cast<size_t>(std::find(all.begin(), all.end(), input) - all.begin());
  }

  // Sorts the axes and removes duplicates and the invalid axis.
  static void sortValid(std::vector<AxisId>& axes) {
    std::sort(axes.begin(), axes.end());
    axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
    if (!axes.empty() && !axes.front().valid()) axes.erase(axes.begin());
  }

  void listReductions() {
    for (ExprId id : segment_.exprs().ids()) {
      if (segment_.expr(id).op->kind == OpKind::Reduction) result_.reductions.push_back(id);
    }
  }

  void markAfter() {
    result_.after.assign(segment_.values().size(), false);
    for (const Expression& expr : segment_.exprs()) {
      bool after = expr.op->kind == OpKind::Reduction ||
                   std::any_of(expr.inputs.begin(), expr.inputs.end(),
                               [&](ValueId input) { return result_.after[input]; });
      for (ValueId output : expr.outputs) result_.after[output] = after;
    }
  }

  // Chooses where each output is stored. An output without reduced axes is stored after the
  // reductions, if it depends on one or if an axis of the space is reduced.
  void chooseStores() {
    for (ValueId output : segment_.outputs()) {
      const std::vector<AxisId>& axes = result_.axes[output];
      bool along_reduced = std::any_of(axes.begin(), axes.end(), [&](AxisId axis) {
        return axis.valid() && result_.reduced[axis];
      });
      bool any_reduced =
          std::find(result_.reduced.begin(), result_.reduced.end(), true) != result_.reduced.end();
      bool finish = !along_reduced && (any_reduced || result_.after[output]);
      result_.stored_in.push_back(finish ? StoredIn::Finish : StoredIn::Loop);
    }
  }

  // Sets Analysis::rounded. A tensor of a float type narrower than f32 is always rounded. An f32
  // value is marked if each op that reads it has a marked result and keeps relative errors small.
  // An f32 output is never marked. A sum keeps relative errors small if no element is negative,
  // because nothing cancels.
  void markRounded() {
    IdVector<ValueId, bool>& rounded = result_.rounded;
    rounded.assign(segment_.values().size(), true);
    for (ValueId id : segment_.values().ids()) {
      const Value& value = segment_.value(id);
      rounded[id] = !value.is_scalar && computeType(value.tensor.dtype) == DType::F32;
    }
    for (ValueId id : segment_.outputs()) rounded[id] = isNarrow(id);
    for (ExprId id : segment_.exprs().ids().reversed()) {
      const Expression& expr = segment_.expr(id);
      for (size_t i = 0; i < expr.inputs.size(); ++i) {
        const ValueId input = expr.inputs[i];
        const bool is_condition = static_cast<int>(i) < expr.op->bool_operands;
        if (isNarrow(input) || (!is_condition && rounded[expr.outputs[0]] && keepsError(expr))) {
          continue;
        }
        rounded[input] = false;
      }
    }
  }

  bool isNarrow(ValueId id) const {
    const DType dtype = segment_.tensor(id).dtype;
    return isFloat(dtype) && dtype != DType::F32 && dtype != DType::F64;
  }

  bool keepsError(const Expression& expr) const {
    switch (expr.op->kind) {
      case OpKind::Pointwise:
        return expr.op->keeps_relative_error;
      case OpKind::Broadcast:
      case OpKind::Expand:
      case OpKind::Set:
        return true;
      case OpKind::Reduction: {
        const bool adds =
            expr.op->reduce_op == ReduceOp::Sum || expr.op->reduce_op == ReduceOp::Avg;
        const ExprId definition = segment_.value(expr.inputs[0]).definition;
        return adds && definition != kNoExpr && segment_.expr(definition).op->nonnegative;
      }
      default:
        return false;
    }
  }

  const Fusion& segment_;
  AxisClasses classes_;
  Analysis result_;
  std::vector<int> reduced_ids_;  // ids of axes along which a reduction combines elements
};

std::vector<Size> findWidths(const Fusion& segment) {
  std::vector<Size> widths;
  for (const Expression& expr : segment.exprs()) {
    if (expr.op->name != "pad") continue;
    for (std::string_view attr : {"lows", "highs"}) {
      for (const Size& width : expr.attr<std::vector<Size>>(attr)) {
        if (width.isConstant()) continue;
        if (std::find(widths.begin(), widths.end(), width) == widths.end()) widths.push_back(width);
      }
    }
  }
  return widths;
}

}  // namespace

const JointReductions* Analysis::pairEndingWith(ExprId id) const {
  const auto found = std::find_if(joint.begin(), joint.end(),
                                  [id](const JointReductions& pair) { return pair.second == id; });
  return found == joint.end() ? nullptr : &*found;
}

Analysis analyzeAsOnePart(const Fusion& segment) {
  Analysis analysis = Analyzer(segment).run();
  analysis.generated = findGenerated(segment, analysis);
  analysis.widths = findWidths(segment);
  return analysis;
}

Analysis analyze(const Fusion& segment) {
  std::string reason = whyNotOneKernel(segment);
  HEDDLE_USER_CHECK(reason.empty(), "segment {} is not one kernel: {}", segment.name, reason);
  if (independentParts(segment).size() <= 1) return analyzeAsOnePart(segment);
  Analysis analysis;
  for (SegmentPart& part : extractParts(segment)) {
    Analysis of_part = analyzeAsOnePart(part.segment);
    analysis.parts.push_back({std::move(part), std::move(of_part)});
  }
  analysis.generated = findGenerated(segment, analysis);
  analysis.widths = findWidths(segment);
  return analysis;
}

std::string whyNotOneKernel(const Fusion& segment) { return kernelRuleViolation(segment); }

}  // namespace heddle::codegen
