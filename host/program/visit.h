#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "host/program/program.h"

namespace heddle::host {

// Streams of a program are numbered 0 to this.
inline constexpr StreamId kMaxStream = 63;

// One lambda per alternative; a forgotten alternative does not compile.
template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

// Every instruction in the order of InstructionIndex: a For or If before its body, then_body before
// else_body. `visit(instruction, index)`. Iterative.
template <class InstructionT, class Visit>
void forEachInstructionIn(InstructionT* first, InstructionT* last, Visit&& visit) {
  std::vector<std::pair<InstructionT*, InstructionT*>> open{{first, last}};
  InstructionIndex index = 0;
  const auto enter = [&](auto& body) {
    if (!body.empty()) open.push_back({body.data(), body.data() + body.size()});
  };
  while (!open.empty()) {
    if (open.back().first == open.back().second) {
      open.pop_back();
      continue;
    }
    InstructionT& instruction = *open.back().first++;
    visit(instruction, index++);
    if (auto* loop = std::get_if<For>(&instruction.op)) enter(loop->body);
    if (auto* branch = std::get_if<If>(&instruction.op)) {
      enter(branch->else_body);  // a stack: pushed first, visited last
      enter(branch->then_body);
    }
  }
}
template <class Visit>
void forEachInstruction(const std::vector<Instruction>& body, Visit&& visit) {
  forEachInstructionIn(body.data(), body.data() + body.size(), visit);
}
template <class Visit>
void forEachInstruction(std::vector<Instruction>& body, Visit&& visit) {
  forEachInstructionIn(body.data(), body.data() + body.size(), visit);
}

// How the ids and sizes of one instruction are renamed. An empty function keeps what it would map.
// Loop indices are renamed by `index`.
struct Renaming {
  std::function<SlotId(SlotId)> slot;
  std::function<TokenId(TokenId)> token;
  std::function<EventId(EventId)> event;
  std::function<KernelId(KernelId)> kernel;
  std::function<MeshId(MeshId)> mesh;
  std::function<Size(const Size&)> size;
  std::function<std::string(const std::string&)> index;
};
// This instruction only, not its bodies. Slots are visited in the order of the text form.
void rename(Instruction& instruction, const Renaming& renaming);

// The program with every Call replaced by the body of its callee, whose slots, tokens, events,
// kernels and loop indices get new names. UserError naming a callee or an operand that does not
// fit.
Program inlineCalls(const Program& program);

// Calls `visit(slot, defines)` for each slot of the instruction, scalars too, in the order of the
// text form: outputs of `a = f(b)` first. `defines`: the slot names something else from here on.
void forEachSlot(const Op& op, const std::function<void(SlotId, bool defines)>& visit);

}  // namespace heddle::host
