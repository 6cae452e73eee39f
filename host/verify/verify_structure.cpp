#include "host/verify/verify_structure.h"

#include <algorithm>
#include <map>
#include <optional>

#include "host/program/one_of.h"
#include "host/program/visit.h"
#include "host/text/program_text.h"
#include "ir/analysis/kernel_rules.h"
#include "ir/base/check.h"
#include "ir/base/lexer.h"
#include "ir/graph/size_scalars.h"

namespace heddle::host {
namespace {

// Checks the ids of the instruction, and then calls `check`. Adds the number and the text of the
// instruction to errors. If an id is out of range, adds the mnemonic instead of the text.
template <class Check>
void atInstruction(const Program& program, const Instruction& x, InstructionIndex index,
                   const Check& check) {
  try {
    verifyIds(program, x);
  } catch (const UserError& error) {
    userErrorWith(error.code(), "instruction {} ({}): {}", index, mnemonic(x.op), error.what());
  }
  try {
    check();
  } catch (const UserError& error) {
    userErrorWith(error.code(), "instruction {} `{}`: {}", index, printInstruction(program, x),
                  error.what());
  }
}

class StructureVerifier {
 public:
  explicit StructureVerifier(const Program& program) : program_(program) {}

  // The order matters. list() checks instructions, and needs legal slots, all symbols, and all
  // tokens and events of the program.
  void run() {
    signature();
    collectSymbols();
    scalars();
    collectPosts();
    list(program_.body, 0);
    for (const Program& callee : program_.callees) verifyStructure(callee);
  }

 private:
  struct Group {
    MeshId on;
    std::optional<StreamId> stream;
    Team team;
  };

  template <class List, class NameOf>
  static void uniqueNames(const List& items, NameOf name_of, std::string_view what) {
    std::set<std::string> seen;
    for (const auto& item : items) {
      HEDDLE_USER_CHECK(seen.insert(name_of(item)).second, "two {} are called {}", what,
                        name_of(item));
    }
  }

  // --- declarations ----------------------------------------------------------------------------

  void signature() {
    const auto name = [](const auto& item) { return item.name; };
    const auto itself = [](const std::string& item) { return item; };
    HEDDLE_USER_CHECK(isWord(program_.name), "program \"{}\": the name is not a word",
                      program_.name);
    uniqueNames(program_.meshes, name, "meshes");
    uniqueNames(program_.kernels, name, "kernels");
    uniqueNames(program_.slots, name, "slots");
    uniqueNames(program_.callees, name, "callees");
    uniqueNames(program_.tokens, itself, "tokens");
    uniqueNames(program_.events, itself, "events");
    for (const Kernel& kernel : program_.kernels) {
      HEDDLE_USER_CHECK(isWord(kernel.name), "kernel \"{}\": the name is not a word", kernel.name);
      const std::string why = kernelRuleViolation(kernel.segment);
      HEDDLE_USER_CHECK(why.empty(), "kernel @{} is not one kernel: {}", kernel.name, why);
      for (const auto& reuse : kernel.segment.reuses()) {
        HEDDLE_USER_CHECK(
            !reuse,
            "kernel @{}: the launch decides in which memory a result is stored; remove "
            "`in %{}` from the kernel and pass one slot as input and output",
            kernel.name, kernel.segment.value(reuse->input).name);
      }
    }
    for (const Slot& slot : program_.slots) verifySlot(slot);
    std::set<SlotId> seen;
    for (SlotId id : program_.inputs) {
      slotId(id);
      HEDDLE_USER_CHECK(seen.insert(id).second, "slot {} is an input twice", id);
    }
    for (SlotId id : program_.outputs) slotId(id);
    for (const auto& ids : {program_.inputs, program_.outputs}) {
      for (SlotId id : ids) {
        const Slot& slot = program_.slots[id];
        HEDDLE_USER_CHECK(!slot.isList(), "%{}: a list can be neither an input nor an output",
                          slot.name);
      }
    }
    reuses(seen);
  }

  void reuses(const std::set<SlotId>& inputs) const {
    std::map<SlotId, SlotId> output_in;
    for (const auto& [position, reuse] : program_.reuses) {
      HEDDLE_USER_CHECK(position < program_.outputs.size(), "output {} of {} reuses an input",
                        position, program_.outputs.size());
      slotId(reuse.input);
      const Slot& output = program_.slots[program_.outputs[position]];
      const Slot& input = program_.slots[reuse.input];
      HEDDLE_USER_CHECK(inputs.contains(reuse.input), "%{} is stored in %{}, which is no input",
                        output.name, input.name);
      HEDDLE_USER_CHECK(!output.is_scalar && !input.is_scalar,
                        "%{} is stored in %{}: both must be tensors", output.name, input.name);
      const auto [first, is_new] = output_in.emplace(reuse.input, program_.outputs[position]);
      HEDDLE_USER_CHECK(is_new, "the outputs %{} and %{} are both stored in the input %{}",
                        program_.slots[first->second].name, output.name, input.name);
    }
  }

  void slotId(SlotId id) const {
    HEDDLE_USER_CHECK(program_.slots.has(id),
                      "program {}: slot {} is used, the program has {} slots", program_.name, id,
                      program_.slots.size());
  }

  void verifySlot(const Slot& slot) const {
    HEDDLE_USER_CHECK(slot.alloc.empty() || slot.alloc.size() == slot.tensor.rank(),
                      "%{}: {} allocated sizes for rank {}", slot.name, slot.alloc.size(),
                      slot.tensor.rank());
    if (slot.isList()) {
      HEDDLE_USER_CHECK(
          slot.tensor.rank() == 1 && slot.tensor.dtype == DType::I64 && !slot.tensor.sharding,
          "%{}: a list is a host value of type i64[SIZE]", slot.name);
    }
    if (!slot.tensor.sharding) return;
    const Sharding& sharding = *slot.tensor.sharding;
    HEDDLE_USER_CHECK(program_.meshes.has(sharding.mesh),
                      "%{}: sharded over mesh {}, the program has {} mesh(es)", slot.name,
                      sharding.mesh, program_.meshes.size());
    const DeviceMesh& mesh = program_.meshes[sharding.mesh];
    std::set<MeshAxis> used;
    const auto use = [&](MeshAxis axis) {
      HEDDLE_USER_CHECK(mesh.has(axis) && used.insert(axis).second,
                        "%{}: mesh axis {} is used twice, or mesh @{} does not have it", slot.name,
                        heddle::name(axis), mesh.name);
    };
    HEDDLE_USER_CHECK(sharding.axes.size() <= slot.tensor.rank(),
                      "%{}: a sharding of {} axes for rank {}", slot.name, sharding.axes.size(),
                      slot.tensor.rank());
    for (const auto& axes : sharding.axes) std::for_each(axes.begin(), axes.end(), use);
    for (const auto& partial : sharding.partial) use(partial.axis);
  }

  // Collects the symbols that have a value in a run. The values come from the sizes of inputs, from
  // defaults, from the job and from the meshes.
  void collectSymbols() {
    symbols_ = {"rank", "ranks"};
    for (const auto& [symbol, value] : program_.size_defaults) symbols_.insert(symbol);
    for (const DeviceMesh& mesh : program_.meshes) {
      for (const DeviceMesh::Axis& axis : mesh.axes) {
        const std::string symbol = fmt::format("@{}.{}", mesh.name, heddle::name(axis.axis));
        symbols_.insert(symbol);
        symbols_.insert(symbol + ".index");
      }
    }
    for (SlotId id : program_.inputs) {
      for (const Size& size : program_.slots[id].tensor.sizes()) {
        std::vector<std::string> found;
        size.collectSymbols(found);
        symbols_.insert(found.begin(), found.end());
      }
    }
  }

  // Checks the inputs that decide sizes. Their values are read at the start of a run, so no
  // instruction may change them.
  void scalars() {
    const std::set<std::string> used = scalarSymbolsOf(program_);
    std::set<SlotId> fixed;
    for (SlotId id : program_.inputs) {
      const Slot& slot = program_.slots[id];
      const std::string symbol = scalarSymbol(slot.name);
      if (!used.contains(symbol) || !mayDecideSizes(slot.tensor)) continue;
      fixed.insert(id);
      symbols_.insert(symbol);
    }
    for (const std::string& symbol : used) {
      HEDDLE_USER_CHECK(symbols_.contains(symbol),
                        "a size contains {}, but program {} has no integer input {} without axes",
                        symbol, program_.name, symbol);
    }
    forEachInstruction(program_.body, [&](const Instruction& x, InstructionIndex index) {
      forEachSlot(x.op, [&](SlotId id, FieldRole role) {
        HEDDLE_USER_CHECK(!(role.defines || role.writes) || !fixed.contains(id),
                          "instruction {} ({}) changes the input %{}, which decides sizes", index,
                          mnemonic(x.op), program_.slots[id].name);
      });
    });
  }

  void collectPosts() {
    forEachInstruction(program_.body, [&](const Instruction& x, InstructionIndex) {
      if (const std::optional<TokenId> token = postedToken(x.op)) posted_.insert(*token);
      forEachFieldOfKind<FieldKind::EventUse>(x.op, [&](EventId id, FieldRole role) {
        if (role.defines) recorded_.insert(id);
      });
    });
  }

  // --- instructions ----------------------------------------------------------------------------

  // Checks a list of instructions and, recursively, their bodies. Checks the depth before it
  // recurses, so that deeply nested programs do not overflow the stack.
  void list(const std::vector<Instruction>& body, int depth) {
    HEDDLE_USER_CHECK(depth < TokenStream::kMaxDepth, "bodies are nested deeper than {}",
                      TokenStream::kMaxDepth);
    const bool inside = group_.has_value();
    const Instruction* open = nullptr;  // the GroupBegin of a group that began in this list
    for (const Instruction& x : body) {
      atInstruction(program_, x, next_index_++, [&] { instruction(x, inside, open); });
      bodies(x, depth);
    }
    HEDDLE_USER_CHECK(open == nullptr, "program {}: a group_begin has no group_end", program_.name);
  }

  // Checks the bodies of an instruction. A loop index has a value only in the body of its loop.
  void bodies(const Instruction& x, int depth) {
    const std::optional<std::string> index = loopIndexOf(x.op);
    if (index) symbols_.insert(*index);
    forEachBody(x.op, [&](const std::vector<Instruction>& body) { list(body, depth + 1); });
    if (index) symbols_.erase(*index);
  }

  static std::optional<std::string> loopIndexOf(const Op& op) {
    std::optional<std::string> index;
    forEachFieldOfKind<FieldKind::LoopIndex>(
        op, [&](const std::string& name, FieldRole) { index = name; });
    return index;
  }

  void instruction(const Instruction& x, bool inside, const Instruction*& open) {
    verifyOperands(program_, x.op);
    for (const Size& size : sizesOf(x.op)) known(size);
    if (const std::optional<std::string> index = loopIndexOf(x.op)) {
      HEDDLE_USER_CHECK(isWord(*index) && symbols_.count(*index) == 0,
                        "the loop index {} is not a word, or already has a meaning here", *index);
    }
    forEachToken(x.op, [&](TokenId token, FieldRole role) {
      HEDDLE_USER_CHECK(role.defines || posted_.count(token) > 0, "nothing posts this token");
    });
    forEachFieldOfKind<FieldKind::EventUse>(x.op, [&](EventId event, FieldRole role) {
      HEDDLE_USER_CHECK(role.defines || recorded_.count(event) > 0, "nothing records this event");
    });
    groups(x, inside, open);
  }

  void known(const Size& size) const {
    std::vector<std::string> found;
    size.collectSymbols(found);
    for (const std::string& symbol : found) {
      HEDDLE_USER_CHECK(symbols_.count(symbol) > 0, "{} has no value here", symbol);
    }
  }

  // Checks the rules of groups. GroupBegin and GroupEnd must be in the same list. Between them,
  // only these instructions are allowed: Send and Recv, loops and branches, and instructions of the
  // kind View.
  void groups(const Instruction& x, bool inside, const Instruction*& open) {
    std::visit(Overloaded{[&](const GroupBegin&) { beginGroup(x, open); },
                          [&](const GroupEnd&) { endGroup(x, inside, open); },
                          [&](const OneOf<Send, Recv> auto& post) { pointToPoint(post); },
                          [&](const auto&) {
                            const InstructionKind kind = kindOf(x.op);
                            const bool may_be_inside =
                                kind == InstructionKind::View || kind == InstructionKind::Control;
                            HEDDLE_USER_CHECK(!group_ || may_be_inside,
                                              "a group may contain only sends and receives, got {}",
                                              mnemonic(x.op));
                          }},
               x.op);
  }

  void beginGroup(const Instruction& x, const Instruction*& open) {
    HEDDLE_USER_CHECK(!group_, "a group inside a group");
    group_ = Group{x.on, std::nullopt, {}};
    open = &x;
  }

  void endGroup(const Instruction& x, bool inside, const Instruction*& open) {
    HEDDLE_USER_CHECK(open != nullptr, "{}",
                      inside ? "the group began outside of this body"
                             : "there is no group_begin before it in this body");
    HEDDLE_USER_CHECK(open->on == x.on, "group_end runs on other ranks than its group_begin");
    group_.reset();
    open = nullptr;
  }

  template <class PointToPoint>
  void pointToPoint(const PointToPoint& x) {
    HEDDLE_USER_CHECK(x.token.has_value() != group_.has_value(), "{}",
                      group_ ? "inside a group only group_end has a token"
                             : "outside of a group it needs a token");
    if (!group_) return;
    HEDDLE_USER_CHECK(!group_->stream || (*group_->stream == x.stream && group_->team == x.team),
                      "a group has one stream and one team");
    group_->stream = x.stream;
    group_->team = x.team;
  }

  const Program& program_;
  std::set<std::string> symbols_;
  std::set<TokenId> posted_;
  std::set<EventId> recorded_;
  std::optional<Group> group_;
  InstructionIndex next_index_ = 0;
};

}  // namespace

void verifyStructure(const Program& program) { StructureVerifier(program).run(); }

void verifyInstruction(const Program& program, const Instruction& x, InstructionIndex index) {
  atInstruction(program, x, index, [&] { verifyOperands(program, x.op); });
}

}  // namespace heddle::host
