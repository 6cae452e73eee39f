#include "ir/segment/settle_orders.h"

#include <algorithm>
#include <set>

#include "ir/analysis/axis_map.h"
#include "ir/analysis/indexed_axes.h"
#include "ir/analysis/kernel_axes.h"
#include "ir/analysis/kernel_rules.h"
#include "ir/analysis/memory_order.h"
#include "ir/base/check.h"
#include "ir/passes/orders/order_notes.h"

namespace heddle {
namespace {

// The axes that a kernel reduces. Each row of the kernel lies along these axes.
class KernelRows {
 public:
  KernelRows(const Fusion& fusion, const Group& group) : fusion_(fusion), axes_(fusion) {
    for (ValueId id : group.inputs) axes_.touch(id);
    for (ExprId id : group.exprs) add(fusion.expr(id));
    for (const auto& [value, axis] : reduced_) rows_.insert(axes_.find(axes_.id(value, axis)));
    has_rows_ = std::any_of(group.outputs.begin(), group.outputs.end(),
                            [&](ValueId id) { return hasRowAxis(id); });
  }

  // Returns whether the kernel reduces rows and also stores a value that has axes of the rows.
  bool hasRows() const { return has_rows_; }

  // Returns whether the value has axes of a row, and another axis is innermost in this order.
  bool hasStridedRows(ValueId id, const AxisOrder& order) {
    if (!hasRowAxis(id)) return false;
    for (size_t i = order.size(); i-- > 0;) {
      const size_t axis = order[i];
      if (!isUnitAxis(fusion_.tensor(id), axis)) return !isRow(id, axis);
    }
    return false;
  }

 private:
  void add(const Expression& expr) {
    const ValueId out = expr.outputs[0];
    axes_.touch(out);
    const AxisMap map = axisMapOf(fusion_, expr);
    for (size_t i = 0; i < map.inputs.size(); ++i) {
      const ValueId in = expr.inputs[i];
      if (fusion_.value(in).is_scalar || isIndexed(expr, i)) continue;
      axes_.touch(in);
      for (size_t axis = 0; axis < map.inputs[i].size(); ++axis) {
        const int place = map.inputs[i][axis];
        if (place == AxisMap::kNone) continue;
        if (map.space[place].kind == IterKind::Reduction) {
          reduced_.emplace_back(in, axis);
        }
        const auto found = std::find(map.outputs[0].begin(), map.outputs[0].end(), place);
        if (found == map.outputs[0].end()) continue;
        axes_.join(axes_.id(in, axis),
                   axes_.id(out, static_cast<size_t>(found - map.outputs[0].begin())));
      }
    }
  }

  bool isRow(ValueId id, size_t axis) { return rows_.contains(axes_.find(axes_.id(id, axis))); }

  bool hasRowAxis(ValueId id) {
    for (size_t axis = 0; axis < fusion_.tensor(id).rank(); ++axis) {
      if (!isUnitAxis(fusion_.tensor(id), axis) && isRow(id, axis)) return true;
    }
    return false;
  }

  const Fusion& fusion_;
  KernelAxes axes_;
  std::vector<std::pair<ValueId, size_t>> reduced_;
  std::set<AxisNode> rows_;
  bool has_rows_ = false;
};

class OrderSettler {
 public:
  explicit OrderSettler(SegmentedFusion& segmented)
      : segmented_(segmented),
        readers_(readersOf(segmented.fusion)),
        is_output_(segmented.fusion.outputFlags()) {}

  void run() {
    for (size_t g = 0; g < segmented_.groups.size(); ++g) {
      const Group& group = segmented_.groups[g];
      if (group.attention) {
        askAttention(group);
      } else if (group.kind == GroupKind::Kernel) {
        askKernel(group, g);
      }
    }
    addOrderNotes(segmented_.fusion, notes_);
  }

 private:
  const Fusion& fusion() const { return segmented_.fusion; }

  void askAttention(const Group& group) {
    for (ValueId id : group.attention->operands()) {
      const std::optional<AxisOrder>& hint = fusion().tensor(id).layout.hint;
      if (!hint || hint->back() + 1 == static_cast<int64_t>(hint->size()) || !isFree(id)) continue;
      remove(id, fmt::format("the attention of %{} needs the last axis innermost",
                             fusion().value(group.attention->results[0]).name));
    }
  }

  void askKernel(const Group& group, size_t index) {
    std::vector<ValueId> refused;
    std::vector<ValueId> boundary = group.inputs;
    boundary.insert(boundary.end(), group.outputs.begin(), group.outputs.end());
    if (std::none_of(boundary.begin(), boundary.end(),
                     [&](ValueId id) { return fusion().tensor(id).layout.hint.has_value(); })) {
      return;
    }
    KernelRows rows(fusion(), group);
    if (!rows.hasRows()) return;
    for (ValueId id : boundary) {
      if (fusion().value(id).is_scalar) continue;
      if (!rows.hasStridedRows(id, orderOf(id))) continue;
      if (!fusion().tensor(id).layout.hint || !isFree(id)) return;
      if (rows.hasStridedRows(id, rowMajor(fusion().tensor(id).rank()))) return;
      refused.push_back(id);
    }
    for (ValueId id : refused) {
      remove(id, fmt::format("kernel g{} reads rows in several sweeps, and the elements of a row "
                             "would not be neighbours",
                             index));
    }
  }

  AxisOrder orderOf(ValueId id) const {
    const std::optional<AxisOrder> order = elementOrder(fusion(), id);
    return order ? *order : rowMajor(fusion().tensor(id).rank());
  }

  bool isKernelOrLibrary(ExprId id) const {
    const int group = segmented_.group_of[id];
    if (group < 0) return true;  // nothing evaluates the expression
    const GroupKind kind = segmented_.groups[group].kind;
    return kind == GroupKind::Kernel || kind == GroupKind::Library;
  }

  // Returns whether the hint of the value can be removed.
  bool isFree(ValueId id) const {
    const Value& value = fusion().value(id);
    if (value.definition == kNoExpr || is_output_[id] || value.tensor.hasFixedOrder()) return false;
    const std::vector<ExprId>& readers = readers_[id];
    return isKernelOrLibrary(value.definition) &&
           std::all_of(readers.begin(), readers.end(),
                       [&](ExprId reader) { return isKernelOrLibrary(reader); });
  }

  void remove(ValueId id, const std::string& why) {
    const std::string& name = fusion().value(id).name;
    notes_.push_back({name, *fusion().tensor(id).layout.hint, hintOrigin(fusion(), id), why});
    segmented_.fusion.layout(id).hint.reset();
  }

  SegmentedFusion& segmented_;
  const IdVector<ValueId, std::vector<ExprId>> readers_;
  const IdVector<ValueId, bool> is_output_;
  std::vector<OrderNote> notes_;
};

}  // namespace

void settleOrders(SegmentedFusion& segmented) { OrderSettler(segmented).run(); }

}  // namespace heddle
