#include "codegen/plan/in_place.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/plan/analysis.h"
#include "ir/analysis/indexed_axes.h"
#include "ir/analysis/kernel_rules.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

// Returns for each value whether it depends on the input without a reduction in between.
IdVector<ValueId, bool> dependents(const Fusion& segment, ValueId input) {
  IdVector<ValueId, bool> depends(segment.values().size(), false);
  depends[input] = true;
  for (const Expression& expr : segment.exprs()) {
    if (expr.op->kind == OpKind::Reduction) continue;
    depends[expr.outputs[0]] = std::any_of(expr.inputs.begin(), expr.inputs.end(),
                                           [&](ValueId operand) { return depends[operand]; });
  }
  return depends;
}

// Returns whether the kernel reads the input only after the reductions, once for each index along
// the kept axes. This is the case if no reduction, and no output that is stored in the loop
// (StoredIn), depends on the input. `depends` is the result of dependents().
bool isReadAfterReductions(const Fusion& segment, const Analysis& analysis,
                           const IdVector<ValueId, bool>& depends) {
  for (const Expression& expr : segment.exprs()) {
    if (expr.op->kind == OpKind::Reduction && depends[expr.inputs[0]]) return false;
  }
  for (size_t i = 0; i < segment.outputs().size(); ++i) {
    if (analysis.stored_in[i] == StoredIn::Loop && depends[segment.outputs()[i]]) return false;
  }
  return true;
}

// Returns whether the kernel may read the input after it has stored output `output`, although the
// output has the axes of the input. There are two cases:
// - The input has all axes of the space, and another output is stored after the reductions and
//   depends on the input without a reduction in between.
// - The segment has reductions, and only other outputs depend on the input. Such outputs may be
//   stored by a later launch (codegen/families/sweeps.h). Outputs that depend on the same input are
//   stored by the same launch.
// `depends` is the result of dependents().
bool mayReadLater(const Fusion& segment, const Analysis& analysis,
                  const IdVector<ValueId, bool>& depends, size_t output, bool has_reduced) {
  const bool has_reductions =
      std::any_of(segment.exprs().begin(), segment.exprs().end(),
                  [](const Expression& expr) { return expr.op->kind == OpKind::Reduction; });
  const bool own = depends[segment.outputs()[output]];
  for (size_t i = 0; i < segment.outputs().size(); ++i) {
    if (!depends[segment.outputs()[i]]) continue;
    if (has_reduced && analysis.stored_in[i] == StoredIn::Finish) return true;
    if (has_reductions && !own) return true;
  }
  return false;
}

// Does the same as InPlaceRules::whyNot(), for a segment of one part.
std::string whyNotInPart(const Fusion& segment, const Analysis& analysis, size_t input,
                         size_t output) {
  const ValueId in = segment.inputs().at(input);
  const ValueId out = segment.outputs().at(output);
  const std::string& name = segment.value(in).name;
  const std::vector<ValueId> indexed = indexedInputs(segment);
  if (std::find(indexed.begin(), indexed.end(), in) != indexed.end()) {
    return fmt::format("the kernel reads %{} at computed indices", name);
  }
  const std::string& result = segment.value(out).name;
  if (segment.tensor(in).dtype != segment.tensor(out).dtype) {
    return fmt::format("%{} and %{} have different dtypes", name, result);
  }
  const std::vector<AxisId>& axes = analysis.axes[in];
  if (axes != analysis.axes[out]) {
    return fmt::format("the kernel reads %{} at other indices than it writes %{}", name, result);
  }
  bool has_reduced = true;
  for (AxisId axis : analysis.reduced.ids()) {
    const bool has = std::find(axes.begin(), axes.end(), axis) != axes.end();
    const bool is_reduced = analysis.reduced[axis];
    if (is_reduced) has_reduced = has_reduced && has;
    if (!is_reduced && !has) {
      return fmt::format("the kernel reads each element of %{} several times", name);
    }
  }
  const IdVector<ValueId, bool> depends = dependents(segment, in);
  if (!has_reduced && !isReadAfterReductions(segment, analysis, depends)) {
    return fmt::format("the kernel reads each element of %{} several times", name);
  }
  if (mayReadLater(segment, analysis, depends, output, has_reduced)) {
    return fmt::format("the kernel may read %{} after it has stored %{}", name, result);
  }
  const std::vector<ExprId> columns = columnReductions(segment);
  if (!columns.empty()) {
    return fmt::format("the kernel also reduces columns (%{})",
                       segment.value(segment.expr(columns.front()).outputs[0]).name);
  }
  return "";
}

}  // namespace

std::string InPlaceRules::whyNot(size_t input, size_t output) {
  if (!analysis_) {
    analysis_ = analyze(segment_);
    const size_t operands = segment_.inputs().size() + segment_.outputs().size();
    if (!analysis_->parts.empty()) parts_of_.resize(operands);
    for (size_t p = 0; p < analysis_->parts.size(); ++p) {
      const std::vector<int>& of_part = analysis_->parts[p].part.operands;
      for (size_t i = 0; i < of_part.size(); ++i) {
        parts_of_[of_part[i]].emplace_back(p, i);
      }
    }
  }
  if (parts_of_.empty()) return whyNotInPart(segment_, *analysis_, input, output);
  const auto [part, stored] = parts_of_.at(segment_.inputs().size() + output).at(0);
  const std::vector<std::pair<size_t, size_t>>& read = parts_of_.at(input);
  // Blocks of different parts run in any order, so another part could read the input too late.
  if (read.size() != 1 || read.front().first != part) {
    return fmt::format("another part of the kernel reads %{}",
                       segment_.value(segment_.inputs()[input]).name);
  }
  const AnalyzedPart& one = analysis_->parts[part];
  return whyNotInPart(one.part.segment, one.analysis, read.front().second,
                      stored - one.part.segment.inputs().size());
}

}  // namespace heddle::codegen
