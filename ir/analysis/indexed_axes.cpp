#include "ir/analysis/indexed_axes.h"

#include <algorithm>

#include "ir/analysis/axis_map.h"

namespace heddle {

std::vector<IndexedAxis> indexedAxesOf(const Fusion& fusion, const Expression& expr) {
  const std::vector<int> map = axisMapOf(fusion, expr).inputs[0];
  std::vector<IndexedAxis> axes(map.size());
  const bool by_value = expr.op->name == "take" || expr.op->name == "take_along_axis";
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i].together = map[i] != AxisMap::kNone;
    if (axes[i].together) axes[i].output_axis = map[i];
    if (!axes[i].together && !by_value) axes[i].output_axis = static_cast<int>(i);
  }
  if (expr.op->name == "flip") {
    for (int64_t axis : expr.attr<std::vector<int64_t>>("axes")) {
      axes[axis].reversed = true;
    }
  }
  if (expr.op->name == "pad") {
    const auto& lows = expr.attr<std::vector<Size>>("lows");
    const auto& highs = expr.attr<std::vector<Size>>("highs");
    for (size_t i = 0; i < axes.size(); ++i) {
      axes[i].low = lows[i];
      axes[i].high = highs[i];
    }
  }
  return axes;
}

bool isIndexed(const Expression& expr, size_t operand) {
  return expr.op->kind == OpKind::Index && operand == 0;
}

std::vector<ValueId> indexedInputs(const Fusion& segment) {
  std::vector<ValueId> indexed;
  for (const Expression& expr : segment.exprs()) {
    if (expr.op->kind != OpKind::Index) continue;
    const ValueId id = expr.inputs[0];
    if (segment.value(id).definition != kNoExpr) continue;
    if (std::find(indexed.begin(), indexed.end(), id) == indexed.end()) indexed.push_back(id);
  }
  return indexed;
}

}  // namespace heddle
