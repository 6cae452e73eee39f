#include "host/passes/analysis/slot_uses.h"

#include "host/program/visit.h"

namespace heddle::host {

IdVector<SlotId, SlotUses> slotUsesOf(const Program& program) {
  IdVector<SlotId, SlotUses> uses(program.slots.size());
  for (const auto* list : {&program.inputs, &program.outputs}) {
    for (SlotId id : *list) uses[id].nested = true;
  }
  for (size_t i = 0; i < program.body.size(); ++i) {
    const Instruction& whole = program.body[i];
    forEachInstructionIn(&whole, &whole + 1, [&](const Instruction& x, InstructionIndex) {
      forEachSlot(x.op, [&](SlotId id, FieldRole role) {
        SlotUses& of = uses[id];
        if (of.at.empty() || of.at.back() != i) of.at.push_back(i);
        if (role.defines) of.defined.push_back(i);
        if (&x != &whole) of.nested = true;
      });
    });
  }
  return uses;
}

std::optional<AxisOrder> denseOrderOf(const Program& program,
                                      const IdVector<SlotId, SlotUses>& uses, SlotId id) {
  const AxisOrder row_major = rowMajor(program.slots[id].tensor.rank());
  bool regrouped = false;
  while (true) {
    const std::vector<size_t>& defined = uses[id].defined;
    if (defined.size() != 1) return std::nullopt;
    const Op& op = program.body[defined.front()].op;
    const Slot& slot = program.slots[id];
    // When every Call is inlined, only Allocate and Alias define tensor slots.
    if (std::holds_alternative<Allocate>(op)) {
      const AxisOrder order = slot.tensor.allocationOrder();
      if (!regrouped) return order;
      return order == rowMajor(order.size()) ? std::optional(row_major) : std::nullopt;
    }
    const auto* view = std::get_if<Alias>(&op);
    if (view == nullptr || !std::holds_alternative<Alias::Reshape>(view->view)) return std::nullopt;
    regrouped = true;
    id = view->in;
  }
}

}  // namespace heddle::host
