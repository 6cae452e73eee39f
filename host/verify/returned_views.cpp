#include "host/verify/returned_views.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
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
      : program_(program),
        unrolled_(unrolled),
        definition_of_(program.slots.size(), kNone),
        writes_(unrolled.buffers.size()) {
    for (BufferId id : unrolled.buffers.ids()) {
      const Buffer& buffer = unrolled.buffers[id];
      if (buffer.origin != Buffer::Origin::Input) continue;
      memory_of_.emplace(program.inputs[static_cast<size_t>(buffer.input)], id);
    }
  }

  void run() {
    for (size_t i = 0; i < unrolled_.steps.size(); ++i) {
      const UnrolledStep& step = unrolled_.steps[i];
      if (step.instruction == nullptr) continue;
      const Op& op = step.instruction->op;
      // Only an Alias makes a view, and only an Allocate creates a buffer.
      if (const auto* alias = std::get_if<Alias>(&op)) {
        define(*alias, i);
      } else if (const auto* allocate = std::get_if<Allocate>(&op)) {
        definition_of_[allocate->out] = kNone;
      } else {
        noteWrites(op, i);
      }
    }
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      if (!program_.reuses.contains(i)) check(program_.outputs[i]);
    }
  }

 private:
  // A view of an input, defined by an Alias. A definition is identified by its index in
  // definitions_, which is larger than the index of the definition that it is derived from.
  struct Definition {
    const View* view;
    size_t step;
    int from;  // the definition of the operand; kNone: the operand is the input itself
  };
  struct Write {
    size_t step;
    int to;  // the definition of the slot that is written; kNone: the slot is the input itself
  };
  static constexpr int kNone = -1;

  void define(const Alias& alias, size_t step) {
    const View& view = unrolled_.steps[step].outputs.front();
    if (!view.buffer.valid() || unrolled_.buffers[view.buffer].origin != Buffer::Origin::Input) {
      definition_of_[alias.out] = kNone;
      return;
    }
    definitions_.push_back({&view, step, definition_of_[alias.in]});
    definition_of_[alias.out] = static_cast<int>(definitions_.size()) - 1;
  }

  // Notes which inputs the step writes on this rank. A rank may have no part in a write, for
  // example if it is not the root of a collective.
  void noteWrites(const Op& op, size_t step) {
    std::set<BufferId> written;
    for (const UnrolledAccess& access : unrolled_.steps[step].accesses) {
      if (access.write) written.insert(access.buffer);
    }
    forEachSlot(op, [&](SlotId id, FieldRole role) {
      if (!role.writes) return;
      const int to = definition_of_[id];
      const auto input = memory_of_.find(id);
      if (to == kNone && input == memory_of_.end()) return;
      const BufferId buffer = to == kNone ? input->second : definitions_[to].view->buffer;
      if (written.contains(buffer)) writes_[buffer].push_back({step, to});
    });
  }

  void check(SlotId output) const {
    if (definition_of_[output] == kNone) return;
    const Definition& mine = definitions_[definition_of_[output]];
    const Buffer& buffer = unrolled_.buffers[mine.view->buffer];
    const std::vector<Write>& writes = writes_[mine.view->buffer];
    auto write = std::partition_point(writes.begin(), writes.end(),
                                      [&](const Write& w) { return w.step < mine.step; });
    for (; write != writes.end(); ++write) {
      if (write->to != kNone && isAllowed(write->to, definition_of_[output])) continue;
      userError(
          "{}: overwrites elements of the output %{}, which {} has defined as a view of the input "
          "%{}. To return the old elements, copy the view before the write. To return the new "
          "ones, define the view after the write",
          text(write->step), program_.slots[output].name, text(mine.step), buffer.name);
    }
  }

  // Returns whether one definition is derived from the other, or the two views have no byte in
  // common. Also returns true if they are derived from different views of a common origin, and
  // these views have no byte in common. Example: two slices have no byte in common, and the output
  // is a part of one of them at an address that only a run knows.
  bool isAllowed(int write, int output) const {
    int a = write, b = output;  // the first definitions after the common one
    int common_a = write, common_b = output;
    while (common_a != common_b) {
      if (common_a > common_b) {
        a = std::exchange(common_a, definitions_[common_a].from);
      } else {
        b = std::exchange(common_b, definitions_[common_b].from);
      }
    }
    if (common_a == write || common_a == output) return true;
    const auto view = [&](int definition) -> const View& { return *definitions_[definition].view; };
    return areApart(view(write), view(output)) || areApart(view(a), view(b));
  }

  std::string text(size_t step) const {
    const UnrolledStep& at = unrolled_.steps[step];
    return fmt::format("instruction {} `{}`", at.index,
                       printInstruction(program_, *at.instruction));
  }

  const Program& program_;
  const Unrolled& unrolled_;
  std::vector<Definition> definitions_;            // in order
  IdVector<SlotId, int> definition_of_;            // the current definition of each slot, or kNone
  std::map<SlotId, BufferId> memory_of_;           // the buffer of each input
  IdVector<BufferId, std::vector<Write>> writes_;  // the writes to each input, in order
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
