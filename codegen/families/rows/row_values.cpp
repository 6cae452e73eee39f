#include "codegen/families/rows/row_values.h"

#include <algorithm>

#include "ir/analysis/indexed_axes.h"
#include "ir/analysis/kernel_rules.h"

namespace heddle::codegen {
namespace {

// Returns whether it costs much more to compute the value again than to keep it.
bool isExpensive(const Fusion& segment, ValueId value) {
  const Expression& expr = segment.expr(segment.value(value).definition);
  if (expr.op->kind == OpKind::Index) return true;
  return expr.op->kind == OpKind::Pointwise && !isCheap(*expr.op);
}

// Returns `roots` and the values on which they depend, in the order of the segment. Leaves out
// inputs, values per row and `leaves`; the search stops there.
std::vector<ValueId> closure(const Fusion& segment, const RowValues& values,
                             const std::vector<ValueId>& roots,
                             const IdVector<ValueId, bool>& leaves) {
  IdVector<ValueId, bool> wanted(segment.values().size(), false);
  for (ValueId root : roots) wanted[root] = true;
  std::vector<ValueId> found;
  for (ExprId id : segment.exprs().ids().reversed()) {
    const Expression& expr = segment.expr(id);
    const ValueId result = expr.outputs[0];
    if (!wanted[result] || values.per_row[result] || leaves[result]) continue;
    found.push_back(result);
    for (size_t i = 0; i < expr.inputs.size(); ++i) {
      if (!isIndexed(expr, i)) wanted[expr.inputs[i]] = true;
    }
  }
  std::reverse(found.begin(), found.end());
  return found;
}

// Returns the sum of the element sizes, in bytes, of those inputs and `leaves` along the row that
// are read to compute `value`.
int64_t inputBytes(const Fusion& segment, const RowValues& values, ValueId value,
                   const IdVector<ValueId, bool>& leaves) {
  IdVector<ValueId, bool> seen(segment.values().size(), false);
  int64_t bytes = 0;
  for (ValueId one : closure(segment, values, {value}, leaves)) {
    const Expression& expr = segment.expr(segment.value(one).definition);
    for (size_t i = 0; i < expr.inputs.size(); ++i) {
      const ValueId input = expr.inputs[i];
      const bool leaf = leaves[input] || segment.value(input).definition == kNoExpr;
      if (isIndexed(expr, i) || values.per_row[input] || !leaf || seen[input]) continue;
      seen[input] = true;
      bytes += sizeOf(segment.tensor(input).dtype);
    }
  }
  return bytes;
}

}  // namespace

RowValues rowValuesOf(const Fusion& segment, const Analysis& analysis) {
  RowValues values;
  values.level.assign(segment.values().size(), 0);
  values.per_row.assign(segment.values().size(), true);
  // Without reductions, all values count as values along the row.
  if (analysis.reductions.empty()) values.per_row.assign(segment.values().size(), false);
  for (ValueId id : segment.values().ids()) {
    for (AxisId axis : analysis.axes[id]) {
      if (axis.valid() && analysis.reduced[axis]) values.per_row[id] = false;
    }
  }
  for (ExprId id : segment.exprs().ids()) {
    const Expression& expr = segment.expr(id);
    if (const JointReductions* pair = analysis.pairEndingWith(id)) {
      values.level[expr.outputs[0]] = values.level[segment.expr(pair->first).outputs[0]];
      continue;
    }
    int level = 0;
    for (ValueId input : expr.inputs) level = std::max(level, values.level[input]);
    if (expr.op->kind == OpKind::Reduction) {
      values.roots.resize(std::max(values.roots.size(), static_cast<size_t>(level) + 1));
      values.roots[static_cast<size_t>(level)].push_back(expr.inputs[0]);
      ++level;
    }
    values.level[expr.outputs[0]] = level;
  }
  values.reductions.resize(values.roots.size());
  for (ExprId id : analysis.reductions) {
    if (analysis.pairEndingWith(id) != nullptr) continue;
    const auto level = static_cast<size_t>(values.level[segment.expr(id).inputs[0]]);
    values.reductions[level].push_back(id);
  }
  std::vector<ValueId> outputs;
  for (ValueId id : segment.outputs()) {
    if (!values.per_row[id]) outputs.push_back(id);
  }
  values.roots.push_back(std::move(outputs));
  return values;
}

std::vector<ValueId> computedAlongRow(const Fusion& segment, const RowValues& values, int sweep,
                                      const IdVector<ValueId, bool>& leaves) {
  return closure(segment, values, values.roots[static_cast<size_t>(sweep)], leaves);
}

namespace {

// Decides which values to keep. The first sweep that needs a kept value computes it.
class KeptValues {
 public:
  KeptValues(const Fusion& segment, const RowValues& values, int64_t many_ops)
      : segment_(segment),
        values_(values),
        many_ops_(many_ops),
        kept_(segment.values().size(), false) {}

  // The first loop starts at the last value. If it keeps a value, only one sweep computes this
  // value. Often this is then the only sweep that needs the operands of the value, so the loop does
  // not keep the operands. The second loop drops each value that has become cheap to compute,
  // because an earlier value on which it depends is kept.
  std::vector<ValueId> choose() {
    for (ExprId id : segment_.exprs().ids().reversed()) {
      const ValueId value = segment_.expr(id).outputs[0];
      if (values_.per_row[value] || sweepsThatNeed(value) < 2) continue;
      kept_[value] = pays(value);
    }
    std::vector<ValueId> kept;
    for (ExprId id : segment_.exprs().ids().reversed()) {
      const ValueId value = segment_.expr(id).outputs[0];
      if (!kept_[value]) continue;
      kept_[value] = false;
      kept_[value] = pays(value);
      if (kept_[value]) kept.push_back(value);
    }
    std::sort(kept.begin(), kept.end());
    return kept;
  }

 private:
  // Returns how many sweeps would compute the value, given the values that are kept so far.
  int sweepsThatNeed(ValueId value) const {
    IdVector<ValueId, bool> made(segment_.values().size(), false);
    int needed = 0;
    for (int sweep = 0; sweep < values_.sweeps(); ++sweep) {
      const std::vector<ValueId> computed = computedAlongRow(segment_, values_, sweep, made);
      needed += static_cast<int>(std::count(computed.begin(), computed.end(), value));
      for (ValueId id : computed) made[id] = kept_[id];
    }
    return needed;
  }

  // Returns whether a condition of keptValues() holds for the value.
  bool pays(ValueId value) const {
    const std::vector<ValueId> own = closure(segment_, values_, {value}, kept_);
    const bool expensive = std::any_of(own.begin(), own.end(),
                                       [&](ValueId one) { return isExpensive(segment_, one); });
    const auto ops = std::count_if(own.begin(), own.end(), [&](ValueId one) {
      return segment_.expr(segment_.value(one).definition).op->kind == OpKind::Pointwise;
    });
    const int64_t replaced = inputBytes(segment_, values_, value, kept_);
    return expensive || ops >= many_ops_ || replaced > sizeOf(segment_.tensor(value).dtype);
  }

  const Fusion& segment_;
  const RowValues& values_;
  const int64_t many_ops_;
  IdVector<ValueId, bool> kept_;
};

}  // namespace

std::vector<ValueId> keptValues(const Fusion& segment, const RowValues& values, int64_t many_ops) {
  return KeptValues(segment, values, many_ops).choose();
}

}  // namespace heddle::codegen
