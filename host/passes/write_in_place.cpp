#include "host/passes/write_in_place.h"

#include <algorithm>
#include <map>
#include <optional>

#include "codegen/plan/in_place.h"
#include "host/lower/lower_reuses.h"
#include "host/passes/analysis/buffer_accesses.h"
#include "host/passes/analysis/slot_uses.h"
#include "host/passes/move_items.h"
#include "host/program/layout_needs.h"
#include "host/program/visit.h"
#include "host/text/program_text.h"
#include "ir/analysis/memory_order.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

// An output that lowering copies to an input at the end of the program.
struct CopiedOutput {
  size_t output;
  ReusedInput reuse;
  size_t copy;                  // index of the Copy to the input
  SlotId value;                 // the operand of this Copy
  std::string name;             // the name that the user gave the value, without '%'
  SlotId buffer = kNoSlot;      // the slot of the Allocate for `value`; kNoSlot: there is none
  size_t allocate = 0;          // index of the Allocate
  std::string why_copied = {};  // "": the output can be written in place
  // The instructions that access the input and must precede the first write to the buffer, which is
  // ItemMove::target. nullopt: the output is copied for a reason that no move can remove.
  std::optional<ItemMove> readers = {};
};

// Finds the outputs of a program that are copied to inputs, and decides which of them can be
// written in place.
class ReuseFinder {
 public:
  explicit ReuseFinder(const Program& program)
      : program_(program),
        items_(bufferAccessesOf(program)),
        uses_(slotUsesOf(program)),
        facts_(program.slots.size()) {
    for (size_t i = 0; i < program.body.size(); ++i) {
      // Only an Alias makes a view. Lowering stores an output in an input with a Copy and with no
      // other instruction.
      if (const auto* view = std::get_if<Alias>(&program.body[i].op)) facts_[view->out].view = view;
      if (const auto* copy = std::get_if<Copy>(&program.body[i].op)) facts_[copy->out].copy = i;
    }
    findRoots();
    findOrderedOutputs();
    findLayoutUsers();
    std::map<TokenId, size_t> posted;
    for (size_t i = 0; i < program.body.size(); ++i) {
      // The operation of a post may access memory until its wait.
      const auto* wait = std::get_if<Wait>(&program.body[i].op);
      const auto post = wait == nullptr ? posted.end() : posted.find(wait->token);
      operation_.push_back(post == posted.end() ? i : post->second);
      if (items_.items[i].posts.valid()) posted[items_.items[i].posts] = i;
      for (const ItemAccess& access : items_.items[operation_[i]].accesses) {
        std::vector<size_t>& list = touching_[access.root];
        if (list.empty() || list.back() != i) list.push_back(i);
      }
    }
  }

  std::vector<CopiedOutput> run() {
    std::vector<CopiedOutput> all;
    std::map<SlotId, SlotId> stored;  // per buffer: the input that becomes its memory
    for (const auto& [output, reuse] : program_.reuses) {
      const std::optional<size_t> copy = facts_[reuse.input].copy;
      if (!copy) continue;
      const SlotId value = std::get<Copy>(program_.body[*copy].op).in;
      const SlotId original = originalOf(value);
      CopiedOutput found{output, reuse, *copy, value, slot(original).name};
      found.why_copied = reasonToCopy(found);
      if (original != value && !found.why_copied.empty()) {
        found.why_copied =
            fmt::format("{} is in the memory of the input {}, which the run overwrites",
                        nameOf(original), nameOf(baseOf(original)));
      }
      SlotId memory = reuse.input;
      if (found.why_copied.empty()) memory = stored.emplace(found.buffer, memory).first->second;
      if (memory != reuse.input) {
        found.why_copied = fmt::format("{} is already stored in {}", nameOf(value), nameOf(memory));
        found.readers.reset();
      }
      all.push_back(std::move(found));
    }
    return all;
  }

 private:
  // The facts about one slot.
  struct SlotFacts {
    const Alias* view = nullptr;             // the Alias that defines the slot
    RootId root = {};                        // the buffer of an input or Allocate; invalid: a view
    std::optional<size_t> copy = {};         // index of the last Copy to the slot
    std::optional<size_t> layout_user = {};  // the first instruction that needs the slot, or a view
                                             // of it, in the layout of its type
    std::optional<size_t> ordered_output = {};  // the first output that is the slot or a view of
                                                // it, and whose order the user requires
  };

  void findRoots() {
    for (RootId root : items_.allocate.ids()) {
      const Instruction* made = items_.allocate[root];
      if (made != nullptr) facts_[std::get<Allocate>(made->op).out].root = root;
    }
    auto root = items_.inputs.begin();
    for (SlotId input : program_.inputs) {
      if (!slot(input).is_scalar) facts_[input].root = *root++;
    }
  }

  // Calls work(facts) for the slot and for its bases, until work() returns false. The bases of a
  // view are the slots of which it is a view, directly or indirectly.
  template <class Work>
  void forBases(SlotId id, const Work& work) {
    while (work(facts_[id]) && facts_[id].view != nullptr) id = facts_[id].view->in;
  }

  void findOrderedOutputs() {
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      if (!slot(program_.outputs[i]).tensor.layout.required) continue;
      forBases(program_.outputs[i], [&](SlotFacts& facts) {
        if (facts.ordered_output) return false;  // its bases have one as well
        facts.ordered_output = i;
        return true;
      });
    }
  }

  void findLayoutUsers() {
    for (size_t i = 0; i < program_.body.size(); ++i) {
      const Op& op = program_.body[i].op;
      if (!needsLayout(op)) continue;
      const auto add = [&](SlotId used) {
        forBases(used, [&](SlotFacts& facts) {
          if (facts.layout_user) return false;  // its bases have one as well
          facts.layout_user = i;
          return true;
        });
      };
      // An Alias accesses no memory, so accessesOf() does not contain its operand.
      if (const auto* view = std::get_if<Alias>(&op)) {
        add(view->in);
      } else {
        for (const Access& access : accessesOf(op)) add(access.slot);
      }
    }
  }

  const Slot& slot(SlotId id) const { return program_.slots[id]; }
  std::string nameOf(SlotId id) const { return "%" + slot(id).name; }
  std::string textOf(size_t item) const {
    const Instruction& x = program_.body[item];
    const std::string line = x.line > 0 ? fmt::format(" (line {})", x.line) : "";
    return "`" + printInstruction(program_, x) + "`" + line;
  }

  // Returns a text such as "the collective `allgather ...` (line 3)".
  std::string kindAndText(size_t item) const {
    const Op& op = program_.body[item].op;
    // Only the wording of the message depends on the kind of the instruction.
    const char* kind = std::holds_alternative<Alias>(op)         ? "the view "
                       : std::holds_alternative<CallLibrary>(op) ? "the library call "
                       : kindOf(op) == InstructionKind::Post     ? "the collective "
                                                                 : "the instruction ";
    return kind + textOf(item);
  }

  // Returns the slot whose name the user gave. If `id` is a copy that appendReuses() has created,
  // this is the copied slot. Otherwise it is `id`.
  SlotId originalOf(SlotId id) const {
    if (!facts_[id].copy) return id;
    const SlotId from = std::get<Copy>(program_.body[*facts_[id].copy].op).in;
    return slot(id).name.starts_with(slot(from).name + kKeptSuffix) ? from : id;
  }

  // Returns the buffer or input of which this slot is a view, or the slot itself.
  SlotId baseOf(SlotId id) const {
    while (facts_[id].view != nullptr) id = facts_[id].view->in;
    return id;
  }

  // Follows views of the kind Same, which only give the same elements another name. Returns the
  // first slot that is no such view.
  SlotId withoutNames(SlotId id) const {
    for (const Alias* view = facts_[id].view;
         view != nullptr && std::holds_alternative<Alias::Same>(view->view);
         view = facts_[id].view) {
      id = view->in;
    }
    return id;
  }

  bool isViewOf(SlotId id, SlotId base) const {
    while (id != base && facts_[id].view != nullptr) id = facts_[id].view->in;
    return id == base;
  }

  std::string reasonToCopy(CopiedOutput& found) const {
    const SlotId input = found.reuse.input;
    const SlotId base = withoutNames(found.value);
    if (const Alias* view = facts_[base].view) {
      return fmt::format("{} is a view of {}", nameOf(found.value), nameOf(view->in));
    }
    if (uses_[base].defined.empty()) return nameOf(base) + " is an input";
    found.allocate = uses_[base].defined.front();
    // Only an Allocate creates a buffer.
    const bool is_buffer = uses_[base].defined.size() == 1 &&
                           std::holds_alternative<Allocate>(program_.body[found.allocate].op);
    if (!is_buffer) return fmt::format("several instructions define {}", nameOf(base));
    found.buffer = base;
    const std::string layout = reasonByLayout(base, input);
    return layout.empty() ? reasonByAccesses(found) : layout;
  }

  // --- layouts -----------------------------------------------------------------------------------

  std::string reasonByLayout(SlotId buffer, SlotId input) const {
    const Layout& wanted = slot(buffer).tensor.layout;
    const std::optional<Layout::Observed>& observed = slot(input).tensor.layout.observed;
    const AxisOrder order = slot(buffer).tensor.allocationOrder();
    const AxisOrder given = observed ? observed->order : rowMajor(order.size());
    const bool is_dense = !observed || std::ranges::count(observed->contiguous, false) == 0;
    const bool same_order = sameOrder(order, given, slot(buffer).tensor);
    if (wanted.required && !same_order) {
      return fmt::format("the user requires order={} of {}, but {} has order={}", str(order),
                         nameOf(buffer), nameOf(input), str(given));
    }
    if (const std::optional<size_t> output = facts_[buffer].ordered_output; output && !same_order) {
      const SlotId view = program_.outputs[*output];
      return fmt::format(
          "the user requires order={} of the output {}, a view of {}, but {} has "
          "order={}",
          str(*slot(view).tensor.layout.required), nameOf(view), nameOf(buffer), nameOf(input),
          str(given));
    }
    const std::optional<size_t> strict = facts_[buffer].layout_user;
    if (!strict) return "";
    if (!same_order || !is_dense) {
      return fmt::format(
          "{} needs {} in the memory order {} without gaps, but {} has the order {}{}",
          kindAndText(*strict), nameOf(buffer), str(order), nameOf(input), str(given),
          is_dense ? "" : " with gaps");
    }
    if (slot(buffer).alloc != slot(input).alloc) {
      return fmt::format("{} needs {} with a different padding than {}", kindAndText(*strict),
                         nameOf(buffer), nameOf(input));
    }
    return "";
  }

  // --- accesses ----------------------------------------------------------------------------------

  const std::vector<size_t>& itemsOf(SlotId slot_of_buffer) const {
    static const std::vector<size_t> kNone;
    const auto found = touching_.find(rootOf(slot_of_buffer));
    return found == touching_.end() ? kNone : found->second;
  }

  // Returns the buffer of an input or of a slot that one Allocate defines.
  RootId rootOf(SlotId id) const {
    HEDDLE_CHECK(facts_[id].root.valid(), "%{} is neither an input nor allocated", slot(id).name);
    return facts_[id].root;
  }

  std::string reasonByAccesses(CopiedOutput& found) const {
    const std::vector<size_t>& of_buffer = itemsOf(found.buffer);
    for (size_t i : of_buffer) {
      if (kindOf(program_.body[i].op) == InstructionKind::Control) {
        return fmt::format("a loop or branch accesses {}", nameOf(found.buffer));
      }
    }
    const auto writes = [&](size_t i) { return i != found.allocate; };
    const auto write = std::find_if(of_buffer.begin(), of_buffer.end(), writes);
    if (write == of_buffer.end()) return nameOf(found.buffer) + " is never written";
    ItemMove readers{{}, *write};
    for (size_t i : itemsOf(found.reuse.input)) {
      if (i == found.copy) continue;
      if (i != *write) {
        readers.items.push_back(i);
      } else if (const std::string why = reasonByWriter(found, i); !why.empty()) {
        return why;
      }
    }
    found.readers = readers;
    if (readers.items.empty() || readers.items.back() < *write) return "";
    const size_t late = *std::upper_bound(readers.items.begin(), readers.items.end(), *write);
    return fmt::format("{} reads {} after {} has written {}", textOf(operation_[late]),
                       nameOf(found.reuse.input), textOf(*write), nameOf(found.buffer));
  }

  // Returns the reason why the instruction that first writes the buffer must not also read the
  // input; empty: it may.
  std::string reasonByWriter(const CopiedOutput& found, size_t item) const {
    // Only kernels have rules for work in place. All other work reads and writes in any order.
    const auto* launch = std::get_if<LaunchKernel>(&program_.body[item].op);
    if (launch == nullptr) {
      return fmt::format("{} reads {} and is no kernel", textOf(item), nameOf(found.reuse.input));
    }
    for (size_t k = 0; k < launch->outputs.size(); ++k) {
      if (!isViewOf(launch->outputs[k], found.buffer)) continue;
      for (size_t i = 0; i < launch->inputs.size(); ++i) {
        if (!isViewOf(launch->inputs[i], found.reuse.input)) continue;
        const bool same = withoutNames(launch->inputs[i]) == found.reuse.input &&
                          withoutNames(launch->outputs[k]) == found.buffer;
        if (!same) {
          return fmt::format("{} reads another view of {}", textOf(item),
                             nameOf(found.reuse.input));
        }
        const Fusion& segment = program_.kernels[launch->kernel].segment;
        const std::string why =
            rules_.try_emplace(launch->kernel, segment).first->second.whyNot(i, k);
        if (!why.empty()) return fmt::format("{}: {}", textOf(item), why);
      }
    }
    return "";
  }

  const Program& program_;
  const BufferAccesses items_;
  const IdVector<SlotId, SlotUses> uses_;
  IdVector<SlotId, SlotFacts> facts_;
  std::vector<size_t> operation_;  // per item: itself; of a wait: the post for which it waits
  mutable std::map<KernelId, codegen::InPlaceRules> rules_;
  std::map<RootId, std::vector<size_t>> touching_;  // per buffer: the items that access it
};

std::vector<CopiedOutput> copiedOutputs(const Program& program) {
  return ReuseFinder(program).run();
}

// Moves readers of inputs before the first write to the output that reuses the input. If several
// instructions write an output, a move may change which one is the first. The function therefore
// repeats the moves up to three times.
Program withEarlyReaders(Program program) {
  for (int round = 0; round < 4; ++round) {
    std::vector<ItemMove> wishes;
    for (const CopiedOutput& found : copiedOutputs(program)) {
      if (found.readers) wishes.push_back(*found.readers);
    }
    if (!moveBefore(program, wishes)) break;
  }
  return program;
}

// Returns whether the passes of this file may change the program.
bool isOurs(const Program& program) {
  return !program.reuses.empty() && isUnordered(program, bufferAccessesOf(program));
}

}  // namespace

Program writeInPlace(Program program) {
  if (!isOurs(program)) return program;
  program = withEarlyReaders(std::move(program));
  std::vector<bool> is_removed(program.body.size(), false);
  for (const CopiedOutput& found : copiedOutputs(program)) {
    const Slot& input = program.slots[found.reuse.input];
    HEDDLE_USER_CHECK(found.why_copied.empty() || !found.reuse.required,
                      "the output %{} cannot be written to the input %{} (`in! %{}`): {}",
                      found.name, input.name, input.name, found.why_copied);
    if (!found.why_copied.empty()) continue;
    program.body[found.allocate].op = Alias{found.buffer, found.reuse.input, Alias::Same{}};
    program.outputs[found.output] = found.value;
    is_removed[found.copy] = true;
  }
  std::vector<Instruction> kept;
  for (size_t i = 0; i < program.body.size(); ++i) {
    if (!is_removed[i]) kept.push_back(std::move(program.body[i]));
  }
  program.body = std::move(kept);
  delayInputWrites(program);
  return program;
}

Program allocateFirst(Program program) {
  if (isOurs(program)) hoistAllocations(program);
  return program;
}

std::vector<std::string> explainReuses(const Program& lowered) {
  std::vector<std::string> lines;
  if (!isOurs(lowered)) return lines;
  const Program program = withEarlyReaders(lowered);
  for (const CopiedOutput& found : copiedOutputs(program)) {
    const std::string names =
        fmt::format("%{} in %{}", found.name, program.slots[found.reuse.input].name);
    lines.push_back(found.why_copied.empty()
                        ? names + ": written in place"
                        : fmt::format("{}: copied, because {}", names, found.why_copied));
  }
  return lines;
}

}  // namespace heddle::host
