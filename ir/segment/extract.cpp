// Implements extract() (ir/segment/segment.h), which turns a group of a segmented fusion into a
// separate fusion.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ir/analysis/axis_map.h"
#include "ir/analysis/indexed_axes.h"
#include "ir/analysis/kernel_rules.h"
#include "ir/base/check.h"
#include "ir/graph/rewrite.h"
#include "ir/segment/segment.h"

namespace heddle {
namespace {

// Copies expressions of a group. If several expressions are equal, copies only the first of them,
// and each of them whose result the group stores. Equal expressions may be on different axes of the
// kernel, and one value cannot serve both. Two expressions therefore count as equal only if their
// operands determine the axes of the result. An iota has no operands, so equal iotas with more than
// one element are all copied.
class GroupCopier {
 public:
  GroupCopier(const Fusion& from, const Group& group, FusionRewriter& rewriter)
      : from_(from), outputs_(group.outputs.begin(), group.outputs.end()), rewriter_(rewriter) {}

  void copy(ExprId id) {
    const Expression& expr = from_.expr(id);
    const ValueId result = expr.outputs[0];
    std::vector<ValueId> operands;
    for (ValueId input : expr.inputs) operands.push_back(rewriter_.at(input));
    std::vector<ExprId>& same = copied_[{expr.op, std::move(operands)}];
    const auto equal = std::find_if(same.begin(), same.end(), [&](ExprId other) {
      return from_.expr(other).attrs == expr.attrs &&
             isNegativeZero(from_.expr(other)) == isNegativeZero(expr) &&
             from_.value(from_.expr(other).outputs[0]).tensor == from_.value(result).tensor;
    });
    if (equal != same.end() && !outputs_.contains(result) && hasAxesOfOperands(expr)) {
      rewriter_.stand(result, rewriter_.at(from_.expr(*equal).outputs[0]));
      return;
    }
    rewriter_.copy(id);
    same.push_back(id);
  }

 private:
  static bool isNegativeZero(const Expression& expr) {
    const Attr* value = expr.op->kind == OpKind::Constant ? expr.find("value") : nullptr;
    // Only a literal of type double can be a negative zero.
    const double* number = value == nullptr ? nullptr : std::get_if<double>(value);
    return number != nullptr && *number == 0 && std::signbit(*number);
  }

  // Returns whether each axis of the result with more than one element is an axis of an operand.
  // Operands that the expression reads at computed indices do not count.
  bool hasAxesOfOperands(const Expression& expr) const {
    if (isHostScalar(from_, expr)) return true;
    const AxisMap map = axisMapOf(from_, expr);
    std::set<int> known;
    for (size_t i = 0; i < expr.inputs.size(); ++i) {
      if (isIndexed(expr, i) || from_.value(expr.inputs[i]).is_scalar) continue;
      const TensorView& operand = from_.tensor(expr.inputs[i]);
      for (size_t axis = 0; axis < map.inputs[i].size(); ++axis) {
        if (!isUnitAxis(operand, axis)) known.insert(map.inputs[i][axis]);
      }
    }
    const TensorView& result = from_.tensor(expr.outputs[0]);
    for (size_t axis = 0; axis < result.rank(); ++axis) {
      if (!isUnitAxis(result, axis) && !known.contains(map.outputs[0][axis])) return false;
    }
    return true;
  }

  const Fusion& from_;
  const std::set<ValueId> outputs_;
  FusionRewriter& rewriter_;
  std::map<std::pair<const OpDef*, std::vector<ValueId>>, std::vector<ExprId>> copied_;
};

}  // namespace

Fusion extract(const SegmentedFusion& segmented, const Group& group) {
  const Fusion& from = segmented.fusion;
  int index = segmented.group_of.at(group.exprs.at(0));
  std::vector<ValueId> part = group.inputs;
  for (ExprId id : group.exprs) {
    const Expression& expr = from.expr(id);
    part.insert(part.end(), expr.inputs.begin(), expr.inputs.end());
    part.insert(part.end(), expr.outputs.begin(), expr.outputs.end());
  }
  FusionRewriter rewriter(from, fmt::format("{}_g{}", from.name, index), part);
  for (ValueId input : group.inputs) rewriter.input(input);
  const auto copyAll = [&](const std::vector<ExprId>& exprs) {
    GroupCopier copier(from, group, rewriter);
    for (ExprId id : exprs) {
      for (ValueId input : from.expr(id).inputs) {
        if (!rewriter.has(input)) copier.copy(from.value(input).definition);  // a constant
      }
      copier.copy(id);
    }
  };
  // Parts must not share computed values.
  if (group.parts.empty()) copyAll(group.exprs);
  for (const std::vector<ExprId>& part : group.parts) copyAll(part);
  for (ValueId output : group.outputs) rewriter.output(output);
  return std::move(rewriter).finishPart();
}

}  // namespace heddle
