#include "host/unroll/preallocated_layouts.h"

#include <algorithm>
#include <set>

#include "host/program/layout_needs.h"
#include "host/program/visit.h"
#include "host/unroll/overlap.h"

namespace heddle::host {
namespace {

class LayoutChooser {
 public:
  explicit LayoutChooser(const Program& program)
      : program_(program), defined_(program.slots.size(), nullptr), counts_(program.slots.size()) {
    forEachInstruction(program.body, [&](const Instruction& x, InstructionIndex) {
      forEachSlot(x.op, [&](SlotId id, FieldRole role) {
        if (!role.defines) return;
        defined_[id] = &x;
        ++counts_[id];
      });
    });
  }

  // Returns the slot of the Allocate that creates the memory of the output, and the layout of this
  // slot that gives the output the layout `given`. Returns nullopt in these cases:
  // - A view between the slot and the output does more than permute axes.
  // - One of these slots has several definitions.
  // - The Allocate is in a loop or branch, or the memory belongs to an input.
  std::optional<std::pair<SlotId, TensorDesc>> slotFor(SlotId output, TensorDesc given) const {
    const auto isKnown = [&](SlotId id) { return defined_[id] != nullptr && counts_[id] == 1; };
    SlotId id = output;
    while (isKnown(id)) {
      // Only an Alias makes a view.
      const auto* view = std::get_if<Alias>(&defined_[id]->op);
      if (view == nullptr) break;
      const bool is_permuted = std::holds_alternative<Alias::Permute>(view->view);
      if (!is_permuted && !std::holds_alternative<Alias::Same>(view->view)) return std::nullopt;
      given = operandOfView(*view, given);
      id = view->in;
    }
    if (!isKnown(id) || !isAllocation(*defined_[id])) return std::nullopt;
    return std::pair(id, std::move(given));
  }

  // Returns whether the allocation may have any layout. Conditions:
  // - No instruction needs the layout of the allocation or of one of its views.
  // - Each view has one definition.
  // - The user requires no memory order for the allocation or its views. A required order of
  //   `output` is ignored here, because the plan checks it.
  bool mayLieAnywhere(SlotId allocated, SlotId output) const {
    std::set<SlotId> views = {allocated};
    bool fits = true;
    size_t before = 0;
    do {
      before = views.size();
      forEachInstruction(program_.body, [&](const Instruction& x, InstructionIndex) {
        // Only an Alias makes a view.
        const auto* view = std::get_if<Alias>(&x.op);
        if (view != nullptr && views.contains(view->in)) {
          views.insert(view->out);
          fits = fits && counts_[view->out] == 1;
        }
      });
    } while (views.size() != before);
    forEachInstruction(program_.body, [&](const Instruction& x, InstructionIndex) {
      if (!needsLayout(x.op)) return;
      forEachSlot(x.op, [&](SlotId id, FieldRole) { fits = fits && !views.contains(id); });
    });
    return fits && std::all_of(views.begin(), views.end(), [&](SlotId id) {
             return id == output || !program_.slots[id].tensor.layout.required;
           });
  }

 private:
  // Only an Allocate creates a buffer. In a loop or branch it may create several, or none.
  bool isAllocation(const Instruction& x) const {
    const bool is_at_top =
        &x >= program_.body.data() && &x < program_.body.data() + program_.body.size();
    return is_at_top && std::holds_alternative<Allocate>(x.op);
  }

  const Program& program_;
  IdVector<SlotId, const Instruction*> defined_;  // the last definition of each slot
  IdVector<SlotId, int> counts_;                  // the number of definitions of each slot
};

}  // namespace

std::map<SlotId, TensorDesc> preallocatedLayouts(
    const Program& program, const std::vector<std::optional<TensorDesc>>& preallocated) {
  std::map<SlotId, TensorDesc> layouts;
  std::optional<LayoutChooser> chooser;
  for (size_t i = 0; i < std::min(preallocated.size(), program.outputs.size()); ++i) {
    const SlotId output = program.outputs[i];
    if (!preallocated[i] || program.slots[output].is_scalar || program.reuses.contains(i)) continue;
    const TensorDesc& given = *preallocated[i];
    if (given.rank() != program.slots[output].tensor.rank() || mayOverlapItself(given)) continue;
    if (!chooser) chooser.emplace(program);
    std::optional<std::pair<SlotId, TensorDesc>> found = chooser->slotFor(output, given);
    if (found && chooser->mayLieAnywhere(found->first, output)) layouts.insert(std::move(*found));
  }
  return layouts;
}

}  // namespace heddle::host
