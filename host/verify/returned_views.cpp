#include "host/verify/returned_views.h"

#include <algorithm>
#include <map>
#include <vector>

#include "host/program/visit.h"
#include "host/text/program_text.h"
#include "host/unroll/overlap.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

class ReturnedViewChecker {
 public:
  ReturnedViewChecker(const Program& program, const Unrolled& unrolled)
      : program_(program), unrolled_(unrolled), views_(program.slots.size()) {}

  void run() {
    for (size_t i = 0; i < unrolled_.steps.size(); ++i) {
      const UnrolledStep& step = unrolled_.steps[i];
      if (step.instruction == nullptr) continue;
      const Op& op = step.instruction->op;
      // Only an Alias makes a view, and only an Allocate creates a buffer.
      if (const auto* alias = std::get_if<Alias>(&op)) {
        define(*alias, i);
      } else if (const auto* allocate = std::get_if<Allocate>(&op)) {
        views_[allocate->out] = {};
      } else {
        noteWrites(op, i);
      }
    }
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      if (!program_.reuses.contains(i)) check(program_.outputs[i]);
    }
  }

 private:
  // A slot that is a view of an input.
  struct InputView {
    const View* view = nullptr;  // nullptr: the slot is no view of an input
    size_t defined = 0;          // the step of the Alias that defines the slot
    size_t first = 0;            // the step of the first Alias between the input and the slot
  };
  struct Write {
    size_t step;
    SlotId slot;
    InputView to;  // view == nullptr: the slot is the input itself
  };

  void define(const Alias& alias, size_t step) {
    const View& view = unrolled_.steps[step].outputs.front();
    const bool is_of_input =
        view.buffer.valid() && unrolled_.buffers[view.buffer].origin == Buffer::Origin::Input;
    const InputView from = views_[alias.in];
    views_[alias.out] = is_of_input
                            ? InputView{&view, step, from.view == nullptr ? step : from.first}
                            : InputView{};
  }

  void noteWrites(const Op& op, size_t step) {
    forEachSlot(op, [&](SlotId id, FieldRole role) {
      if (role.writes && !program_.slots[id].is_scalar) writes_.push_back({step, id, views_[id]});
    });
  }

  void check(SlotId output) const {
    const InputView& mine = views_[output];
    if (mine.view == nullptr) return;
    const Buffer& buffer = unrolled_.buffers[mine.view->buffer];
    const SlotId input = program_.inputs[static_cast<size_t>(buffer.input)];
    for (const Write& write : writes_) {
      if (write.step < mine.defined || !writesTo(mine.view->buffer, write.step)) continue;
      const bool is_direct = write.slot == input && write.to.view == nullptr;
      const bool is_apart =
          !is_direct && (write.to.view == nullptr || areApart(*write.to.view, *mine.view));
      const bool is_own = !is_direct && write.to.first == mine.first;
      if (is_apart || is_own) continue;
      userError(
          "{}: overwrites elements of the output %{}, which {} has defined as a view of the input "
          "%{}. To return the old elements, copy the view before the write. To return the new "
          "ones, define the view after the write",
          text(write.step), program_.slots[output].name, text(mine.defined), buffer.name);
    }
  }

  // Returns whether the step writes to the buffer on this rank. A rank may have no part in a write,
  // for example if it is not the root of a collective.
  bool writesTo(BufferId buffer, size_t step) const {
    const auto& accesses = unrolled_.steps[step].accesses;
    return std::any_of(accesses.begin(), accesses.end(), [&](const UnrolledAccess& access) {
      return access.write && access.buffer == buffer;
    });
  }

  std::string text(size_t step) const {
    const UnrolledStep& at = unrolled_.steps[step];
    return fmt::format("instruction {} `{}`", at.index,
                       printInstruction(program_, *at.instruction));
  }

  const Program& program_;
  const Unrolled& unrolled_;
  IdVector<SlotId, InputView> views_;  // the current definition of each slot
  std::vector<Write> writes_;          // in order
};

}  // namespace

void checkReturnedViews(const Program& program, const Unrolled& unrolled) {
  const auto is_view_of_input = [&](const View& view) {
    return view.buffer.valid() && unrolled.buffers[view.buffer].origin == Buffer::Origin::Input;
  };
  if (std::none_of(unrolled.outputs.begin(), unrolled.outputs.end(), is_view_of_input)) return;
  ReturnedViewChecker(program, unrolled).run();
}

}  // namespace heddle::host
