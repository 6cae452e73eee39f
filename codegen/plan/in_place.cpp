#include "codegen/plan/in_place.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/plan/analysis.h"
#include "ir/analysis/indexed_axes.h"
#include "ir/analysis/kernel_rules.h"

namespace heddle::codegen {
namespace {

// Returns whether the kernel reads the input only after its reductions, once for each index along
// the axes that are not reduced: no reduction and no output with all axes depends on it.
bool isReadAfterReductions(const Fusion& segment, const Analysis& analysis, ValueId input) {
  IdVector<ValueId, bool> depends(segment.values().size(), false);
  depends[input] = true;
  for (const Expression& expr : segment.exprs()) {
    const bool reads = std::any_of(expr.inputs.begin(), expr.inputs.end(),
                                   [&](ValueId operand) { return depends[operand]; });
    if (reads && expr.op->kind == OpKind::Reduction) return false;
    depends[expr.outputs[0]] = reads;
  }
  for (size_t i = 0; i < segment.outputs().size(); ++i) {
    if (analysis.places[i] == Place::Loop && depends[segment.outputs()[i]]) return false;
  }
  return true;
}

}  // namespace

std::string whyNotInPlace(const Fusion& segment, size_t input, size_t output) {
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
  const Analysis analysis = analyze(segment);
  const std::vector<int>& axes = analysis.axes[in];
  if (axes != analysis.axes[out]) {
    return fmt::format("the kernel reads %{} at other indices than it writes %{}", name, result);
  }
  bool has_reduced = true;
  for (int axis = 0; axis < static_cast<int>(analysis.reduced.size()); ++axis) {
    const bool has = std::find(axes.begin(), axes.end(), axis) != axes.end();
    const bool is_reduced = analysis.reduced[static_cast<size_t>(axis)];
    if (is_reduced) has_reduced = has_reduced && has;
    if (!is_reduced && !has) {
      return fmt::format("the kernel reads each element of %{} several times", name);
    }
  }
  if (!has_reduced && !isReadAfterReductions(segment, analysis, in)) {
    return fmt::format("the kernel reads each element of %{} several times", name);
  }
  const std::vector<ExprId> columns = columnReductions(segment);
  if (!columns.empty()) {
    return fmt::format("the kernel also reduces columns (%{})",
                       segment.value(segment.expr(columns.front()).outputs[0]).name);
  }
  return "";
}

}  // namespace heddle::codegen
