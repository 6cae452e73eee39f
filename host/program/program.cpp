#include "host/program/program.h"

#include <algorithm>
#include <map>

#include "host/program/visit.h"

namespace heddle::host {
namespace {

void addAll(std::vector<Access>& out, const std::vector<SlotId>& slots, bool write) {
  for (SlotId slot : slots) out.push_back({slot, write});
}

std::vector<Access> readsAndWrites(const std::vector<SlotId>& inputs,
                                   const std::vector<SlotId>& outputs) {
  std::vector<Access> out;
  addAll(out, inputs, false);
  addAll(out, outputs, true);
  return out;
}

// Slots, tokens and events in the order in which the text names them; so two programs that differ
// only in numbering become equal.
Program canonical(const Program& program) {
  Program out = program;
  std::vector<SlotId> slot_of(program.slots.size(), -1);
  out.slots.clear();
  const auto place = [&](SlotId id) {
    if (slot_of.at(id) >= 0) return;
    slot_of[id] = static_cast<SlotId>(out.slots.size());
    out.slots.push_back(program.slots[id]);
  };
  for (SlotId id : program.inputs) place(id);
  for (size_t id = 0; id < program.slots.size(); ++id) place(static_cast<SlotId>(id));

  std::vector<int32_t> token_of(program.tokens.size(), -1), event_of(program.events.size(), -1);
  out.tokens.clear();
  out.events.clear();
  const auto number = [](std::vector<int32_t>& of, int32_t id, const std::vector<std::string>& from,
                         std::vector<std::string>& to) {
    if (of.at(id) < 0) {
      of[id] = static_cast<int32_t>(to.size());
      to.push_back(from[id]);
    }
    return of[id];
  };
  Renaming renaming;
  renaming.slot = [&](SlotId id) { return slot_of.at(id); };
  renaming.token = [&](TokenId id) { return number(token_of, id, program.tokens, out.tokens); };
  renaming.event = [&](EventId id) { return number(event_of, id, program.events, out.events); };
  forEachInstruction(out.body, [&](Instruction& x, InstructionIndex) { rename(x, renaming); });
  for (SlotId& id : out.inputs) id = slot_of.at(id);
  for (SlotId& id : out.outputs) id = slot_of.at(id);
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
  return a.name == b.name && sameGraph(a.segment, b.segment);
}

}  // namespace

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
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].name == slot_name) return static_cast<SlotId>(i);
  }
  return std::nullopt;
}

int Program::streams() const {
  StreamId highest = 0;
  forEachInstruction(body, [&](const Instruction& x, InstructionIndex) {
    highest = std::max(highest, streamOf(x.op).value_or(0));
  });
  return 1 + highest;
}

std::vector<bool> Program::communicationStreams() const {
  std::vector<bool> communicates(static_cast<size_t>(streams()));
  std::vector<bool> computes(communicates.size());
  forEachInstruction(body, [&](const Instruction& x, InstructionIndex) {
    const Op& op = x.op;
    const auto stream = static_cast<size_t>(streamOf(op).value_or(0));
    if (std::holds_alternative<LaunchKernel>(op) || std::holds_alternative<CallLibrary>(op)) {
      computes[stream] = true;
    }
    if (std::holds_alternative<Communicate>(op) || std::holds_alternative<Send>(op) ||
        std::holds_alternative<Recv>(op)) {
      communicates[stream] = true;
    }
  });
  for (size_t i = 0; i < communicates.size(); ++i) {
    communicates[i] = communicates[i] && !computes[i];
  }
  return communicates;
}

bool sameProgram(const Program& a, const Program& b) {
  const Program x = canonical(a), y = canonical(b);
  return x.name == y.name && x.meshes == y.meshes && x.slots == y.slots && x.tokens == y.tokens &&
         x.events == y.events && x.inputs == y.inputs && x.outputs == y.outputs &&
         x.size_defaults == y.size_defaults && x.guards == y.guards && x.body == y.body &&
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
  using List = std::vector<Access>;
  return std::visit(Overloaded{
                        [](const Allocate& x) {
                          return List{{x.out, true}};
                        },
                        [](const Free& x) {
                          return List{{x.slot, true}};
                        },
                        [](const Alias&) { return List{}; },
                        [](const Evaluate&) { return List{}; },
                        [](const LaunchKernel& x) { return readsAndWrites(x.inputs, x.outputs); },
                        [](const CallLibrary& x) { return readsAndWrites(x.inputs, x.outputs); },
                        [](const Copy& x) {
                          return List{{x.in, false}, {x.out, true}};
                        },
                        [](const Communicate& x) {
                          List list;
                          for (const auto& [in, out] : x.pairs()) {
                            list.push_back({in, false, true});
                            list.push_back({out, true, true});
                          }
                          return list;
                        },
                        [](const Send& x) {
                          return List{{x.slot, false, true}};
                        },
                        [](const Recv& x) {
                          return List{{x.slot, true, true}};
                        },
                        [](const GroupBegin&) { return List{}; },
                        [](const GroupEnd&) { return List{}; },
                        [](const Wait&) { return List{}; },
                        [](const RecordEvent&) { return List{}; },
                        [](const WaitEvent&) { return List{}; },
                        [](const ReadBack& x) {
                          return List{{x.in, false}};
                        },
                        [](const For&) { return List{}; },
                        [](const If&) { return List{}; },
                        [](const Call&) { return List{}; },
                        [](const Check& x) {
                          return List{{x.slot, false}};
                        },
                        [](const Print& x) {
                          return List{{x.slot, false}};
                        },
                    },
                    op);
}

std::optional<StreamId> streamOf(const Op& op) {
  using Maybe = std::optional<StreamId>;
  return std::visit(Overloaded{
                        [](const Allocate& x) { return Maybe(x.stream); },
                        [](const Free& x) { return Maybe(x.stream); },
                        [](const Alias&) { return Maybe(); },
                        [](const Evaluate&) { return Maybe(); },
                        [](const LaunchKernel& x) { return Maybe(x.stream); },
                        [](const CallLibrary& x) { return Maybe(x.stream); },
                        [](const Copy& x) { return Maybe(x.stream); },
                        [](const Communicate& x) { return Maybe(x.stream); },
                        [](const Send& x) { return Maybe(x.stream); },
                        [](const Recv& x) { return Maybe(x.stream); },
                        [](const GroupBegin&) { return Maybe(); },
                        [](const GroupEnd&) { return Maybe(); },
                        [](const Wait& x) { return Maybe(x.stream); },
                        [](const RecordEvent& x) { return Maybe(x.stream); },
                        [](const WaitEvent& x) { return Maybe(x.stream); },
                        [](const ReadBack& x) { return Maybe(x.stream); },
                        [](const For&) { return Maybe(); },
                        [](const If&) { return Maybe(); },
                        [](const Call&) { return Maybe(); },
                        [](const Check& x) { return Maybe(x.stream); },
                        [](const Print& x) { return Maybe(x.stream); },
                    },
                    op);
}

std::string_view mnemonic(const Op& op) {
  using Text = std::string_view;
  return std::visit(Overloaded{
                        [](const Allocate&) -> Text { return "allocate"; },
                        [](const Free&) -> Text { return "free"; },
                        [](const Alias&) -> Text { return "alias"; },
                        [](const Evaluate&) -> Text { return "evaluate"; },
                        [](const LaunchKernel&) -> Text { return "launch"; },
                        [](const CallLibrary&) -> Text { return "call_library"; },
                        [](const Copy&) -> Text { return "copy"; },
                        [](const Communicate&) -> Text { return "communicate"; },
                        [](const Send&) -> Text { return "send"; },
                        [](const Recv&) -> Text { return "recv"; },
                        [](const GroupBegin&) -> Text { return "group_begin"; },
                        [](const GroupEnd&) -> Text { return "group_end"; },
                        [](const Wait&) -> Text { return "wait"; },
                        [](const RecordEvent&) -> Text { return "record_event"; },
                        [](const WaitEvent&) -> Text { return "wait_event"; },
                        [](const ReadBack&) -> Text { return "read_back"; },
                        [](const For&) -> Text { return "for"; },
                        [](const If&) -> Text { return "if"; },
                        [](const Call&) -> Text { return "call"; },
                        [](const Check&) -> Text { return "check"; },
                        [](const Print&) -> Text { return "print"; },
                    },
                    op);
}

void forEachSlot(const Op& op, const std::function<void(SlotId, bool)>& visit) {
  const auto use = [&](const std::vector<SlotId>& slots, bool defines) {
    for (SlotId slot : slots) visit(slot, defines);
  };
  const auto define = [&](SlotId out, std::initializer_list<SlotId> inputs) {
    visit(out, true);
    for (SlotId in : inputs) visit(in, false);
  };
  std::visit(Overloaded{
                 [&](const Allocate& x) { define(x.out, {}); },
                 [&](const Free& x) { visit(x.slot, false); },
                 [&](const Alias& x) { define(x.out, {x.in}); },
                 [&](const Evaluate& x) {
                   visit(x.out, true);
                   if (auto* apply = std::get_if<Evaluate::Apply>(&x.expression)) {
                     use(apply->args, false);
                   }
                 },
                 [&](const LaunchKernel& x) { use(x.inputs, false), use(x.outputs, false); },
                 [&](const CallLibrary& x) { use(x.inputs, false), use(x.outputs, false); },
                 [&](const Copy& x) { visit(x.in, false), visit(x.out, false); },
                 [&](const Communicate& x) {
                   const auto named = [&](SlotId id) {
                     if (id != kNoSlot) visit(id, false);
                   };
                   for (const auto& [in, out] : x.pairs()) named(in), named(out);
                   for (const auto& counts : {x.send_counts, x.recv_counts}) {
                     named(counts.value_or(kNoSlot));
                   }
                 },
                 [&](const Send& x) { visit(x.slot, false); },
                 [&](const Recv& x) { visit(x.slot, false); },
                 [](const GroupBegin&) {},
                 [](const GroupEnd&) {},
                 [](const Wait&) {},
                 [](const RecordEvent&) {},
                 [](const WaitEvent&) {},
                 [&](const ReadBack& x) { define(x.out, {x.in}); },
                 [](const For&) {},
                 [&](const If& x) {
                   if (auto* slot = std::get_if<SlotId>(&x.predicate.lhs)) visit(*slot, false);
                 },
                 [&](const Call& x) { use(x.outputs, true), use(x.inputs, false); },
                 [&](const Check& x) { visit(x.slot, false); },
                 [&](const Print& x) { visit(x.slot, false); },
             },
             op);
}

}  // namespace heddle::host
