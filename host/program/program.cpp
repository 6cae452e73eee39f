#include "host/program/program.h"

#include <algorithm>
#include <map>

#include "host/program/visit.h"
#include "ir/graph/size_scalars.h"

namespace heddle::host {
namespace {

// Returns a copy with the ids that the program gets when it is printed and parsed: the inputs are
// the first slots, and tokens and events are numbered in the order of their first use. The copies
// of two programs that differ only in these ids are equal.
Program canonical(const Program& program) {
  Program out = program;
  IdVector<SlotId, SlotId> slot_of(program.slots.size());
  IdVector<TokenId, TokenId> token_of(program.tokens.size());
  IdVector<EventId, EventId> event_of(program.events.size());
  out.slots.clear();
  out.tokens.clear();
  out.events.clear();
  const auto number = [](auto& of, auto id, const auto& from, auto& to) {
    if (!of.at(id).valid()) of[id] = to.push_back(from[id]);
    return of[id];
  };
  for (SlotId id : program.inputs) number(slot_of, id, program.slots, out.slots);
  for (SlotId id : program.slots.ids()) number(slot_of, id, program.slots, out.slots);
  Renaming renaming;
  renaming.slot = [&](SlotId id) { return slot_of.at(id); };
  renaming.token = [&](TokenId id) { return number(token_of, id, program.tokens, out.tokens); };
  renaming.event = [&](EventId id) { return number(event_of, id, program.events, out.events); };
  forEachInstruction(out.body, [&](Instruction& x, InstructionIndex) { rename(x, renaming); });
  for (SlotId& id : out.inputs) id = slot_of.at(id);
  for (SlotId& id : out.outputs) id = slot_of.at(id);
  for (auto& [output, reuse] : out.reuses) reuse.input = slot_of.at(reuse.input);
  return out;
}

bool sameCallees(const Program& a, const Program& b) {
  std::map<std::string, const Program*> left, right;
  for (const Program& callee : a.callees) left[callee.name] = &callee;
  for (const Program& callee : b.callees) right[callee.name] = &callee;
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const auto& x, const auto& y) {
                      return x.first == y.first && sameProgram(*x.second, *y.second);
                    });
}

bool sameKernel(const Kernel& a, const Kernel& b) {
  return a.name == b.name && a.candidate == b.candidate && sameGraph(a.segment, b.segment);
}

}  // namespace

bool Instruction::operator==(const Instruction& other) const {
  return on == other.on && op == other.op;
}

bool mayGroup(comm::CollectiveKind kind) {
  using enum comm::CollectiveKind;
  return kind == Allreduce || kind == Reduce || kind == Broadcast || kind == Allgather ||
         kind == ReduceScatter || kind == AllToAll;
}

std::vector<Communicate::Pair> Communicate::pairs() const {
  if (kind == comm::CollectiveKind::Barrier) return {};
  std::vector<Pair> out_pairs{{in, out}};
  out_pairs.insert(out_pairs.end(), also.begin(), also.end());
  return out_pairs;
}

std::optional<SlotId> Program::findSlot(std::string_view slot_name) const {
  for (SlotId id : slots.ids()) {
    if (slots[id].name == slot_name) return id;
  }
  return std::nullopt;
}

size_t Program::streams() const {
  StreamId highest = kCallerStream;
  forEachInstruction(body, [&](const Instruction& x, InstructionIndex) {
    highest = std::max(highest, streamOf(x.op).value_or(kCallerStream));
  });
  return 1 + highest.index();
}

IdVector<StreamId, bool> Program::communicationStreams() const {
  IdVector<StreamId, bool> communicates(streams());
  IdVector<StreamId, bool> computes(communicates.size());
  forEachInstruction(body, [&](const Instruction& x, InstructionIndex) {
    const StreamId stream = streamOf(x.op).value_or(kCallerStream);
    // Of all work, only launches and library calls count as computation. Other work, such as a
    // copy, may share a stream with collectives.
    if (std::holds_alternative<LaunchKernel>(x.op) || std::holds_alternative<CallLibrary>(x.op)) {
      computes[stream] = true;
    }
    if (kindOf(x.op) == InstructionKind::Post) communicates[stream] = true;
  });
  for (StreamId stream : communicates.ids()) {
    communicates[stream] = communicates[stream] && !computes[stream];
  }
  return communicates;
}

bool sameProgram(const Program& a, const Program& b) {
  const Program x = canonical(a), y = canonical(b);
  return x.name == y.name && x.meshes == y.meshes && x.slots == y.slots && x.tokens == y.tokens &&
         x.events == y.events && x.inputs == y.inputs && x.outputs == y.outputs &&
         x.reuses == y.reuses && x.size_defaults == y.size_defaults && x.guards == y.guards &&
         x.body == y.body &&
         std::equal(x.kernels.begin(), x.kernels.end(), y.kernels.begin(), y.kernels.end(),
                    sameKernel) &&
         sameCallees(x, y);
}

int32_t countInstructions(const std::vector<Instruction>& body) {
  int32_t count = 0;
  forEachInstruction(body, [&](const Instruction&, InstructionIndex) { ++count; });
  return count;
}

std::vector<Access> accessesOf(const Op& op) {
  std::vector<Access> out;
  out.reserve(4);
  forEachFieldOfKind<FieldKind::Slot>(op, [&](auto& member, FieldRole field) {
    const auto add = [&](SlotId slot, FieldRole role) {
      if (role.reads || role.writes) out.push_back({slot, role.writes, role.borrowed});
    };
    parts::forEachSlotIn(member, field, add);
  });
  return out;
}

std::optional<StreamId> streamOf(const Op& op) {
  std::optional<StreamId> stream;
  forEachFieldOfKind<FieldKind::StreamUse>(op, [&](StreamId id, FieldRole) { stream = id; });
  return stream;
}

const Team* teamOf(const Op& op) {
  const Team* team = nullptr;
  forEachFieldOfKind<FieldKind::Team>(op, [&](const Team& each, FieldRole) { team = &each; });
  return team;
}

std::optional<TokenId> postedToken(const Op& op) {
  std::optional<TokenId> token;
  forEachToken(op, [&](TokenId id, FieldRole role) {
    if (role.defines) token = id;
  });
  return token;
}

std::set<std::string> scalarSymbolsOf(const Program& program) {
  std::set<std::string> symbols;
  const auto add = [&](const Size& size) { addScalarSymbols(size, symbols); };
  for (const Slot& slot : program.slots) {
    for (const IterDomain& axis : slot.tensor.domain) add(axis.extent);
    for (const Size& size : slot.alloc) add(size);
  }
  for (const SizeGuard& guard : program.guards) {
    add(guard.a);
    add(guard.b);
  }
  for (const Kernel& kernel : program.kernels) heddle::forEachSize(kernel.segment, add);
  forEachInstruction(program.body, [&](const Instruction& x, InstructionIndex) {
    for (const Size& size : sizesOf(x.op)) add(size);
  });
  return symbols;
}

std::vector<Size> sizesOf(const Op& op) {
  std::vector<Size> out;
  forEachSize(op, [&](const Size& size) { out.push_back(size); });
  return out;
}

std::string_view mnemonic(const Op& op) {
  return std::visit([](const auto& x) { return std::decay_t<decltype(x)>::kMnemonic; }, op);
}

InstructionKind kindOf(const Op& op) {
  return std::visit([](const auto& x) { return std::decay_t<decltype(x)>::kKind; }, op);
}

}  // namespace heddle::host
