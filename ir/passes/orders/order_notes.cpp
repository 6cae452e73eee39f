#include "ir/passes/orders/order_notes.h"

#include <algorithm>

#include "ir/analysis/memory_order.h"
#include "ir/analysis/reshard_step.h"
#include "ir/base/check.h"

namespace heddle {
namespace {

std::vector<OrderNote> notesOf(const Fusion& fusion) {
  return fusion.annotation<std::vector<OrderNote>>(kOrderAnnotation)
      .value_or(std::vector<OrderNote>{});
}

std::string originIn(const std::vector<OrderNote>& notes, const Value& value) {
  const auto found = std::find_if(notes.rbegin(), notes.rend(), [&](const OrderNote& note) {
    return note.value == value.name && note.undone.empty() &&
           note.order == value.tensor.layout.hint;
  });
  return found == notes.rend() ? "the text" : found->from;
}

// Returns a text that names the operation, such as "allgather %y", if the expression may need an
// order of its operands or result. Returns "" for all other expressions.
std::string operationIn(const Fusion& fusion, const Expression& expr) {
  const std::string& result = fusion.value(expr.outputs[0]).name;
  switch (expr.op->kind) {
    case OpKind::Set: {
      if (!fusion.tensor(expr.inputs[0]).sharding || !fusion.tensor(expr.outputs[0]).sharding) {
        return "";
      }
      const ReshardStep step = reshardStepOf(fusion, expr);
      return isCommunication(step.kind) ? fmt::format("{} %{}", name(step.kind), result) : "";
    }
    case OpKind::Matmul:
    case OpKind::Reshape:
      return fmt::format("{} %{}", expr.op->name, result);
    default:
      return "";
  }
}

// Returns operationIn() of the expression that needs an order of the value. If several expressions
// may need one, prefers a collective. If there is none, returns a general text.
std::string needOf(const Fusion& fusion, ValueId id) {
  std::string need;
  for (const Expression& expr : fusion.exprs()) {
    const bool reads = std::find(expr.inputs.begin(), expr.inputs.end(), id) != expr.inputs.end();
    const bool moves = expr.op->kind == OpKind::Set;
    if (!reads && !(moves && expr.outputs[0] == id)) continue;
    const std::string operation = operationIn(fusion, expr);
    if (moves && !operation.empty()) return operation;
    if (need.empty()) need = operation;
  }
  return need.empty() ? "a collective, a library call or a view" : need;
}

std::string textOf(const ValueOrder& order) {
  if (!order.undone.empty()) {
    return fmt::format("%{}: hint {} from {} was undone: {}\n", order.value, str(order.order),
                       order.from, order.undone);
  }
  const char* how = order.kind == ValueOrder::Kind::Required ? "required by"
                    : order.kind == ValueOrder::Kind::Needed ? "needed by"
                                                             : "hint from";
  return fmt::format("%{}: order {}, {} {}\n", order.value, str(order.order), how, order.from);
}

}  // namespace

void addOrderNotes(Fusion& fusion, const std::vector<OrderNote>& notes) {
  if (notes.empty()) return;
  std::vector<OrderNote> all = notesOf(fusion);
  const size_t known = all.size();
  for (const OrderNote& note : notes) {
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(known);
    if (std::find(all.begin(), end, note) == end) all.push_back(note);
  }
  fusion.annotate(kOrderAnnotation, std::move(all));
}

std::string hintOrigin(const Fusion& fusion, ValueId id) {
  return originIn(notesOf(fusion), fusion.value(id));
}

std::string_view name(ValueOrder::Kind kind) {
  switch (kind) {
    case ValueOrder::Kind::Required:
      return "required";
    case ValueOrder::Kind::Needed:
      return "needed";
    case ValueOrder::Kind::Hinted:
      return "hinted";
  }
  HEDDLE_CHECK(false, "order kind {} is not in the enum", static_cast<int>(kind));
}

std::vector<ValueOrder> ordersOf(const Fusion& fusion, const std::vector<ValueId>& values) {
  using Kind = ValueOrder::Kind;
  const std::vector<OrderNote> notes = notesOf(fusion);
  std::vector<ValueOrder> orders;
  for (ValueId id : values) {
    const Value& value = fusion.value(id);
    if (value.is_scalar) continue;
    const Layout& layout = value.tensor.layout;
    const AxisOrder order = value.tensor.allocationOrder();
    if (layout.required) {
      orders.push_back({value.name, order, Kind::Required, "the user", ""});
    } else if (layout.needed) {
      orders.push_back({value.name, order, Kind::Needed, needOf(fusion, id), ""});
    } else if (layout.hint) {
      orders.push_back({value.name, order, Kind::Hinted, originIn(notes, value), ""});
    }
    for (const OrderNote& note : notes) {
      if (note.value != value.name || note.undone.empty()) continue;
      orders.push_back({value.name, note.order, Kind::Hinted, note.from, note.undone});
    }
  }
  return orders;
}

std::string dumpOrders(const Fusion& fusion, const std::vector<ValueId>& values) {
  std::string text;
  for (const ValueOrder& order : ordersOf(fusion, values)) text += textOf(order);
  return text;
}

}  // namespace heddle
