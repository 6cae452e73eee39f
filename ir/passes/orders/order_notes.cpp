#include "ir/passes/orders/order_notes.h"

#include <algorithm>

#include "ir/analysis/memory_order.h"
#include "ir/base/error.h"

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

std::string whyOrdered(const Value& value, const std::vector<OrderNote>& notes) {
  const Layout& layout = value.tensor.layout;
  if (layout.required) return "required by the user";
  if (layout.needed) return "needed by a collective, a library call or a view";
  return "hint from " + originIn(notes, value);
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

std::string dumpOrders(const Fusion& fusion, const std::vector<ValueId>& values) {
  const std::vector<OrderNote> notes = notesOf(fusion);
  std::string text;
  for (ValueId id : values) {
    const Value& value = fusion.value(id);
    if (value.is_scalar) continue;
    const Layout& layout = value.tensor.layout;
    if (layout.required || layout.needed || layout.hint) {
      text += fmt::format("%{}: order {}, {}\n", value.name, str(value.tensor.allocationOrder()),
                          whyOrdered(value, notes));
    }
    for (const OrderNote& note : notes) {
      if (note.value != value.name || note.undone.empty()) continue;
      text += fmt::format("%{}: hint {} from {} was undone: {}\n", note.value, str(note.order),
                          note.from, note.undone);
    }
  }
  return text;
}

}  // namespace heddle
