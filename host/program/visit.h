#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "host/program/field_parts.h"
#include "host/program/instruction_fields.h"
#include "host/program/program.h"
#include "ir/base/overloaded.h"

namespace heddle::host {

// Functions that visit or replace the parts of instructions (host/program/instructions.h): their
// fields (host/program/fields.h), and the slots, tokens, sizes and bodies in these fields. A body
// is a list of instructions inside a For or If.

// The highest number of a stream that a program may use. Streams are numbered from 0.
inline constexpr StreamId kMaxStream{63};

// Calls `visit(field, member)` for each field of the instruction, in the order of the text form.
// `field` describes the field (Field in host/program/fields.h), and `member` is its value in `op`.
// `op` is an Op or one of its alternatives.
template <class OpT, class Visit>
void forEachField(OpT& op, Visit&& visit) {
  if constexpr (std::is_same_v<std::remove_const_t<OpT>, Op>) {
    std::visit([&](auto& x) { forEachFieldOf(x, visit); }, op);
  } else {
    forEachFieldOf(op, visit);
  }
}

// Calls `visit(member, role)` for each field of one kind.
template <FieldKind kKind, class OpT, class Visit>
void forEachFieldOfKind(OpT& op, Visit&& visit) {
  forEachField(op, [&](const auto& field, auto& member) {
    if constexpr (std::decay_t<decltype(field)>::kKind == kKind) visit(member, field.role);
  });
}

// Calls `visit(slot, role)` for each slot of the instruction, in the order of the text form. Visits
// scalar slots too.
template <class OpT, class Visit>
void forEachSlot(OpT& op, Visit&& visit) {
  forEachFieldOfKind<FieldKind::Slot>(
      op, [&](auto& member, FieldRole role) { parts::forEachSlotIn(member, role, visit); });
  forEachFieldOfKind<FieldKind::Operand>(
      op, [&](auto& member, FieldRole role) { parts::forEachSlotIn(member, role, visit); });
}

// Calls `visit(token, role)` for each token of the instruction. role.defines is true if the
// instruction posts the operation that the token represents.
template <class OpT, class Visit>
void forEachToken(OpT& op, Visit&& visit) {
  forEachFieldOfKind<FieldKind::Token>(op, [&](auto& member, FieldRole role) {
    if constexpr (parts::kIsOptional<std::decay_t<decltype(member)>>) {
      if (member) visit(*member, role);
    } else {
      visit(member, role);
    }
  });
}

// Calls `visit(size)` for each size of the instruction. Does not visit the sizes in its bodies.
template <class OpT, class Visit>
void forEachSize(OpT& op, Visit&& visit) {
  forEachFieldOfKind<FieldKind::Size>(
      op, [&](auto& member, FieldRole) { parts::forEachSizeIn(member, visit); });
  forEachFieldOfKind<FieldKind::Operand>(
      op, [&](auto& member, FieldRole) { parts::forEachSizeIn(member, visit); });
}

// Calls `visit(body)` for each body of the instruction, in program order.
template <class OpT, class Visit>
void forEachBody(OpT& op, Visit&& visit) {
  forEachFieldOfKind<FieldKind::Body>(op, [&](auto& body, FieldRole) { visit(body); });
}

// Calls `visit(instruction, index)` for every instruction, including those in bodies. The order is
// that of InstructionIndex, in which an instruction precedes its bodies. The function is iterative,
// because programs may be nested deeply.
template <class InstructionT, class Visit>
void forEachInstructionIn(InstructionT* first, InstructionT* last, Visit&& visit) {
  std::vector<std::pair<InstructionT*, InstructionT*>> open{{first, last}};
  InstructionIndex index = 0;
  while (!open.empty()) {
    if (open.back().first == open.back().second) {
      open.pop_back();
      continue;
    }
    InstructionT& instruction = *open.back().first++;
    visit(instruction, index++);
    // `open` is a stack, so the bodies are reversed: the first body must be on top.
    const auto bodies = static_cast<std::ptrdiff_t>(open.size());
    forEachBody(instruction.op, [&](auto& body) {
      open.push_back({body.data(), body.data() + body.size()});
    });
    std::reverse(open.begin() + bodies, open.end());
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

// Calls `visit(slot, role)` for each slot of the instruction and of the instructions in its bodies.
template <class Visit>
void forEachSlotInside(const Instruction& instruction, Visit&& visit) {
  forEachInstructionIn(&instruction, &instruction + 1,
                       [&](const Instruction& x, InstructionIndex) { forEachSlot(x.op, visit); });
}

// Maps the ids and sizes of an instruction to new ones. Each function takes an old id or size and
// returns the new one. An empty function changes nothing. `index` renames the loop index where a
// For declares it; `size` must rename the index in the sizes that use it.
struct Renaming {
  std::function<SlotId(SlotId)> slot;
  std::function<TokenId(TokenId)> token;
  std::function<EventId(EventId)> event;
  std::function<KernelId(KernelId)> kernel;
  std::function<MeshId(MeshId)> mesh;
  std::function<Size(const Size&)> size;
  std::function<std::string(const std::string&)> index;
};
// Replaces the ids and sizes of this instruction, but not those in its bodies. Calls
// `renaming.slot` in the order of the text form.
void rename(Instruction& instruction, const Renaming& renaming);

// Replaces every Call by the body of the called program. Slot %x of program p becomes %p.x, with a
// number appended if this name already exists. Scalar inputs and outputs of p become the slots that
// the Call names. An Alias connects each tensor input or output of p with the slot that the Call
// names. Tokens, events, kernels, meshes and loop indices of p get new names if their names already
// exist. Exception: a mesh of p that equals a mesh of the caller becomes that mesh.
// Throws UserError in these cases:
// - A called program does not exist.
// - The number of operands or results, or the type of an operand, does not fit the called program.
// - There are more than 200,000 instructions, or more than 200,000 slots and kernels together.
//   Those of a called program count once for each Call. Exception: a program without Calls may have
//   any number of slots and kernels.
// - An input of the called program decides sizes, and the Call does not pass an input of `program`
//   for it.
// - The Call names two different slots for one scalar of the called program, for example one as
//   input and one as output.
// - A Call is restricted to a mesh, and an instruction of the called program (outside of loops and
//   branches) to a different one.
Program inlineCalls(const Program& program);

}  // namespace heddle::host
