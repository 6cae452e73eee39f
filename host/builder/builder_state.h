#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "host/builder/program_builder.h"
#include "host/text/program_rules.h"
#include "host/verify/verify_structure.h"
#include "ir/base/check.h"

namespace heddle::host {

// The program that a ProgramBuilder has built so far.
struct ProgramBuilder::State {
  State();

  // The scope of a loop, branch, group or `on`. The destructor restores the values that `loops`,
  // `on` and `in_group` had in the constructor. If a body throws, keep() is not called. The
  // destructor then also removes all instructions of the scope.
  class Scope {
   public:
    explicit Scope(State& state);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    void keep() { is_kept_ = true; }

   private:
    State& state_;
    const size_t open_, instructions_, loops_;
    const MeshId on_;
    const bool in_group_;
    const InstructionIndex next_index_;
    bool is_kept_ = false;
  };

  // --- declarations ----------------------------------------------------------------------------

  // Throws UserError "<declaration>: <violation>", unless `violation` is empty.
  static void refuse(const std::string& declaration, const std::string& violation) {
    HEDDLE_USER_CHECK(violation.empty(), "{}: {}", declaration, violation);
  }
  // Checks a slot and appends it to the program, with resolved() sizes. Errors begin with
  // `declaration`.
  SlotRef declare(const std::string& declaration, Slot slot);
  // Replaces the meshes of a kernel by all meshes of the program, and changes the MeshIds in its
  // shardings accordingly. Throws UserError if the kernel has a mesh for which the program has no
  // equal mesh with the same name.
  void adoptMeshes(const std::string& declaration, Fusion& segment) const;

  // --- references ------------------------------------------------------------------------------

  template <class IdType>
  Ref<IdType> ref(IdType id) const {
    return {id, number};
  }
  // Returns the id of a Ref. Throws UserError if the Ref is empty or belongs to another builder.
  template <class IdType>
  IdType id(Ref<IdType> ref) const {
    constexpr std::string_view kWhat = nameOf(static_cast<IdType*>(nullptr));
    HEDDLE_USER_CHECK(ref.builder_ != 0, "a {} is missing: its Ref is empty{}", kWhat,
                      kWhat == "token" ? " (inside a group, only the group has a token)" : "");
    HEDDLE_USER_CHECK(ref.builder_ == number, "{} {} belongs to another ProgramBuilder", kWhat,
                      ref.id_);
    return ref.id_;
  }
  std::vector<SlotId> ids(const Slots& slots) const;
  // Returns the id of `token`. If it is nullopt, adds a token with a default name and returns its
  // id.
  TokenId tokenOr(const std::optional<TokenRef>& token);
  // Appends a name that is not yet in the list: the prefix and a number. Returns the id of the
  // name.
  template <class IdType>
  static IdType addDefaultName(IdVector<IdType, std::string>& names, std::string_view prefix) {
    for (size_t n = names.size();; ++n) {
      std::string name = fmt::format("{}{}", prefix, n);
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      return names.push_back(std::move(name));
    }
  }

  // --- instructions ----------------------------------------------------------------------------

  // Checks and appends an instruction without bodies. `make` returns it, for example as an
  // Allocate.
  template <class Make>
  void append(const Make& make) {
    close(checked(make));
  }
  // Creates an instruction with `make`, calls resolve(), makes the checks that need no other
  // instruction, and increments next_index. Does not append the instruction.
  template <class Make>
  Instruction checked(const Make& make) {
    using Made = std::invoke_result_t<Make>;
    Instruction x;
    x.on = on;
    try {
      x.op = make();
      resolve(x);
    } catch (const UserError& error) {
      userErrorWith(error.code(), "instruction {} ({}): {}", next_index, Made::kMnemonic,
                    error.what());
    }
    verifyInstruction(program, x, next_index);
    ++next_index;
    return x;
  }
  // Appends an instruction that checked() has returned. Its bodies, if it has any, must be
  // complete.
  void close(Instruction x) { open.back().push_back(std::move(x)); }
  template <class Transfer>
  TokenRef transfer(SlotRef slot, const Size& peer, const TransferOptions& options);
  void branch(const std::function<Predicate()>& predicate, const Body& then_body,
              const Body& else_body);
  // Adds `callee` to Program::callees, unless the list contains an equal program. Throws UserError
  // if the list contains a different program with the same name.
  void addCallee(const Program& callee);
  // Calls `body` and returns the instructions that it appends. An empty `body` appends none. Sets
  // `on` to kNoMesh. A Scope must exist during the call: its destructor restores `on`, and also
  // `open` if `body` throws.
  std::vector<Instruction> collect(const Body& body);

  // --- loop indices ----------------------------------------------------------------------------

  // The caller gets the index of a loop as a Size. This Size is a symbol that no other loop of the
  // process has. resolved() replaces the symbol by the name of the index.
  struct Loop {
    std::string symbol;
    std::string index;
  };
  // Begins a loop and returns its index. The destructor of the current Scope ends the loop.
  Size beginLoop(const std::string& index);
  // Returns the size with the names of loop indices in place of their symbols. Throws UserError if
  // the size contains the index of a loop that has ended.
  Size resolved(const Size& size) const;
  // Replaces the sizes of an instruction, but not those in its bodies, by their resolved() forms.
  void resolve(Instruction& x) const;
  static bool hasLoopIndex(const Size& size);
  // Returns a name for a loop index (i, j, k, i1, i2, ...) that is neither in `loops` nor in
  // `size_symbols`.
  std::string unusedIndex() const;

  Program program;
  const int64_t number;  // number of this builder, unique in the process
  DeclaredNames names;
  std::set<std::string> size_symbols;  // symbols of input sizes and of defaults
  // The bodies around the next instruction, outermost first. The first one is the body of the
  // program.
  std::vector<std::vector<Instruction>> open;
  std::vector<Loop> loops;  // the loops around the next instruction
  MeshId on = kNoMesh;      // Instruction::on of the next instruction
  bool in_group = false;    // true: the next instruction is inside a group
  InstructionIndex next_index = 0;

 private:
  static constexpr std::string_view nameOf(const SlotId*) { return "slot"; }
  static constexpr std::string_view nameOf(const TokenId*) { return "token"; }
  static constexpr std::string_view nameOf(const EventId*) { return "event"; }
  static constexpr std::string_view nameOf(const KernelId*) { return "kernel"; }
  static constexpr std::string_view nameOf(const MeshId*) { return "mesh"; }
};

}  // namespace heddle::host
