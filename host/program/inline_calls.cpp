#include <algorithm>
#include <map>
#include <set>

#include "host/program/visit.h"
#include "ir/base/check.h"
#include "ir/base/unique_names.h"
#include "ir/graph/size_scalars.h"

namespace heddle::host {
namespace {

// Replaces the Calls of one program by the bodies of the called programs (the callees). For each
// Call, the class first maps the symbols of the callee to sizes of the caller. It then maps the
// meshes and the slots. Slots come last, because their types use symbols and meshes. Finally it
// copies the body of the callee and renames the ids and sizes in the copy.
class Inliner {
 public:
  explicit Inliner(const Program& program) : out_(program) {
    for (const Slot& slot : out_.slots) slot_names_.add(slot.name);
    for (const std::string& token : out_.tokens) token_names_.add(token);
    for (const std::string& event : out_.events) event_names_.add(event);
    for (const Kernel& kernel : out_.kernels) kernel_names_.add(kernel.name);
    forEachInstruction(out_.body, [&](const Instruction& x, InstructionIndex) {
      forEachFieldOfKind<FieldKind::LoopIndex>(
          x.op, [&](const std::string& name, FieldRole) { index_names_.add(name); });
    });
  }

  Program run() {
    checkLength();
    for (Program& callee : out_.callees) callee = inlineCalls(callee);
    const std::vector<Program> callees = std::move(out_.callees);
    out_.callees.clear();
    for (const Program& callee : callees) callees_.try_emplace(callee.name, &callee);
    out_.body = expanded(out_.body);
    return std::move(out_);
  }

 private:
  // Nested calls can multiply the length of the program, so the length is checked before the calls
  // are expanded.
  void checkLength() const {
    constexpr int64_t kMost = 200'000;
    const auto check = [&](int64_t count, const char* what) {
      HEDDLE_USER_CHECK(count <= kMost,
                        "program {} has {}{} {} if its calls are replaced by the programs that "
                        "they call, and at most {} are allowed",
                        out_.name, count == kUnbounded ? "at least " : "", count, what, kMost);
    };
    check(countOf(out_, [](const Program& x) { return countInstructions(x.body); }),
          "instructions");
    if (out_.callees.empty()) return;
    check(countOf(out_, [](const Program& x) { return x.slots.size() + x.kernels.size(); }),
          "slots and kernels");
  }

  static constexpr int64_t kUnbounded = int64_t{1} << 60;

  // Returns own(program) plus, for each Call, the count of the called program. The result is at
  // most kUnbounded.
  template <class Own>
  static int64_t countOf(const Program& program, const Own& own) {
    std::map<std::string, int64_t> callees;
    for (const Program& callee : program.callees)
      callees.emplace(callee.name, countOf(callee, own));
    auto count = static_cast<int64_t>(own(program));
    forEachInstruction(program.body, [&](const Instruction& x, InstructionIndex) {
      // Only a Call runs another program.
      const auto* call = std::get_if<Call>(&x.op);
      const auto found = call == nullptr ? callees.end() : callees.find(call->program);
      if (found != callees.end()) count = std::min(kUnbounded, count + found->second);
    });
    return count;
  }

  std::vector<Instruction> expanded(const std::vector<Instruction>& body) {
    std::vector<Instruction> result;
    for (const Instruction& x : body) {
      // Only a Call is replaced. All other instructions are copied, and their bodies are expanded.
      if (const auto* call = std::get_if<Call>(&x.op)) {
        expand(x, *call, result);
        continue;
      }
      result.push_back(x);
      forEachBody(result.back().op,
                  [&](std::vector<Instruction>& inner) { inner = expanded(inner); });
    }
    return result;
  }

  const Program& calleeOf(const Call& call) const {
    const auto found = callees_.find(call.program);
    HEDDLE_USER_CHECK(found != callees_.end(), "there is no program {} to call", call.program);
    return *found->second;
  }

  void expand(const Instruction& at, const Call& call, std::vector<Instruction>& result) {
    const Program& callee = calleeOf(call);
    HEDDLE_USER_CHECK(
        callee.inputs.size() == call.inputs.size() && callee.outputs.size() == call.outputs.size(),
        "program {} takes {} inputs and has {} outputs, the call has {} and {}", callee.name,
        callee.inputs.size(), callee.outputs.size(), call.inputs.size(), call.outputs.size());
    std::vector<SizeGuard> checks = bindSymbols(callee, call);
    bindMeshes(callee);
    // A guard may contain any symbol of the callee, so all symbols must have been mapped.
    for (SizeGuard& check : checks) {
      check.a = substituted(check.a);
      if (!(check.a == check.b)) out_.guards.push_back(std::move(check));
    }
    bindSlots(callee, call);
    for (const SizeGuard& guard : callee.guards) {
      out_.guards.push_back(
          {substituted(guard.a), substituted(guard.b), guard.source, guard.at_most});
    }
    const auto tensors = [&](const std::vector<SlotId>& inner, const std::vector<SlotId>& outer,
                             bool enter) {
      for (size_t i = 0; i < inner.size(); ++i) {
        if (callee.slots.at(inner[i]).is_scalar) continue;
        const SlotId mine = slots_.at(inner[i]);
        const Alias alias =
            enter ? Alias{mine, outer[i], Alias::Same{}} : Alias{outer[i], mine, Alias::Same{}};
        result.push_back({alias, at.on, at.line});
      }
    };
    tensors(callee.inputs, call.inputs, true);
    std::vector<Instruction> body = callee.body;
    const Renaming renaming = renamingOf(callee);
    forEachInstruction(body, [&](Instruction& x, InstructionIndex) { rename(x, renaming); });
    restrict(body, at.on);
    result.insert(result.end(), body.begin(), body.end());
    tensors(callee.outputs, call.outputs, false);
  }

  // Restricts the instructions of the list `body` to the ranks of mesh `on`. Instructions inside a
  // For or If of this list need no change, because other ranks skip the For or If. Throws UserError
  // if an instruction of the list is already restricted to a different mesh, because an instruction
  // can name only one mesh. Does nothing if `on` is kNoMesh.
  void restrict(std::vector<Instruction>& body, MeshId on) const {
    if (!on.valid()) return;
    for (Instruction& x : body) {
      HEDDLE_USER_CHECK(!x.on.valid() || x.on == on,
                        "a call on the ranks of one mesh runs a program with instructions for the "
                        "ranks of another mesh");
      x.on = on;
    }
  }

  // --- sizes -----------------------------------------------------------------------------------

  Size substituted(const Size& size) const {
    return size.substitute([&](const std::string& symbol) -> std::optional<Size> {
      const auto found = symbols_.find(symbol);
      return found == symbols_.end() ? std::nullopt : std::optional(found->second);
    });
  }

  // Maps the symbols of the callee. A symbol gets its value from the first input axis whose extent
  // is exactly this symbol, or else its default. bindScalars() maps the symbols of inputs (`%n`)
  // instead. For each other axis of an input, the result has a guard that compares the extents of
  // the callee and the caller. Each loop index of the callee gets a new name.
  std::vector<SizeGuard> bindSymbols(const Program& callee, const Call& call) {
    symbols_.clear();
    for (const auto& [symbol, value] : callee.size_defaults) symbols_[symbol] = Size(value);
    std::set<std::string> bound;
    std::vector<SizeGuard> checks;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const Slot& inner = callee.slots.at(callee.inputs[i]);
      const Slot& outer = out_.slots.at(call.inputs[i]);
      HEDDLE_USER_CHECK(inner.is_scalar == outer.is_scalar &&
                            inner.tensor.dtype == outer.tensor.dtype &&
                            inner.tensor.rank() == outer.tensor.rank(),
                        "%{} does not fit input %{} of program {}: the types differ", outer.name,
                        inner.name, callee.name);
      for (size_t axis = 0; axis < inner.tensor.rank(); ++axis) {
        const Size& from = outer.tensor.domain[axis].extent;
        const Size& to = inner.tensor.domain[axis].extent;
        const bool is_name = to.kind() == Size::Kind::Symbol && !isScalarValue(to);
        if (is_name && bound.insert(to.symbolName()).second) {
          symbols_[to.symbolName()] = from;
        } else {
          checks.push_back({to, from,
                            fmt::format("axis {} of %{} and of input %{} of program {}", axis,
                                        outer.name, inner.name, callee.name)});
        }
      }
    }
    bindScalars(callee, call);
    forEachInstruction(callee.body, [&](const Instruction& x, InstructionIndex) {
      forEachFieldOfKind<FieldKind::LoopIndex>(x.op, [&](const std::string& name, FieldRole) {
        symbols_.insert_or_assign(name, Size::symbol(index_names_.fresh(name)));
      });
    });
    return checks;
  }

  // Maps the symbols of the inputs whose values decide sizes of the callee. All sizes must be known
  // before the run, and the inputs of the caller are the only scalars whose values are known then.
  // For each of these inputs of the callee, the call must therefore pass an input of the caller.
  void bindScalars(const Program& callee, const Call& call) {
    const std::set<std::string>& used = scalarsOf(callee);
    if (used.empty()) return;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const std::string& inner = callee.slots.at(callee.inputs[i]).name;
      const std::string& outer = out_.slots.at(call.inputs[i]).name;
      if (!used.contains(scalarSymbol(inner))) continue;
      const bool is_input =
          std::find(out_.inputs.begin(), out_.inputs.end(), call.inputs[i]) != out_.inputs.end();
      HEDDLE_USER_CHECK(is_input,
                        "%{} decides sizes of program {}, so a call must pass an input for it, got "
                        "%{}",
                        inner, callee.name, outer);
      symbols_.insert_or_assign(scalarSymbol(inner), Size::symbol(scalarSymbol(outer)));
    }
  }

  // Returns scalarSymbolsOf(callee). Computes it once per callee.
  const std::set<std::string>& scalarsOf(const Program& callee) {
    const auto [found, is_new] = scalars_.try_emplace(&callee);
    if (is_new) found->second = scalarSymbolsOf(callee);
    return found->second;
  }

  void bindMeshes(const Program& callee) {
    meshes_.clear();
    for (const DeviceMesh& mesh : callee.meshes) {
      auto found = std::find(out_.meshes.begin(), out_.meshes.end(), mesh);
      if (found == out_.meshes.end()) {
        UniqueNames taken(1);
        for (const DeviceMesh& other : out_.meshes) taken.add(other.name);
        DeviceMesh renamed = mesh;
        renamed.name = taken.fresh(mesh.name);
        for (const DeviceMesh::Axis& axis : mesh.axes) {
          for (const std::string end : {"", ".index"}) {
            const std::string rest = fmt::format(".{}{}", name(axis.axis), end);
            symbols_["@" + mesh.name + rest] = Size::symbol("@" + renamed.name + rest);
          }
        }
        out_.meshes.push_back(renamed);
        found = out_.meshes.end() - 1;
      }
      meshes_.push_back(MeshId(found - out_.meshes.begin()));
    }
  }

  // --- names -----------------------------------------------------------------------------------

  // Maps the scalar inputs and outputs of the callee to slots of the caller. Adds all other slots
  // of the callee to the caller.
  void bindSlots(const Program& callee, const Call& call) {
    slots_.assign(callee.slots.size(), kNoSlot);
    const auto share = [&](const std::vector<SlotId>& inner, const std::vector<SlotId>& outer) {
      for (size_t i = 0; i < inner.size(); ++i) {
        const Slot& slot = callee.slots.at(inner[i]);
        if (!slot.is_scalar) continue;
        SlotId& shared = slots_[inner[i]];
        HEDDLE_USER_CHECK(!shared.valid() || shared == outer[i],
                          "the scalar %{} of program {} would be two different slots of its caller",
                          slot.name, callee.name);
        shared = outer[i];
      }
    };
    share(callee.inputs, call.inputs);
    share(callee.outputs, call.outputs);
    for (SlotId id : callee.slots.ids()) {
      if (slots_[id].valid()) continue;
      Slot slot = callee.slots[id];
      slot.name = slot_names_.fresh(callee.name + "." + slot.name);
      slot.default_value.reset();
      for (IterDomain& axis : slot.tensor.domain) axis.extent = substituted(axis.extent);
      for (Size& size : slot.alloc) size = substituted(size);
      if (slot.tensor.sharding) {
        slot.tensor.sharding->mesh = meshes_.at(slot.tensor.sharding->mesh);
      }
      slots_[id] = out_.slots.push_back(std::move(slot));
    }
  }

  // Appends `names` to `to`. A name that `to` already contains is renamed. Returns the ids of the
  // names in `to`, in the order of `names`.
  template <class IdType>
  static IdVector<IdType, IdType> append(const IdVector<IdType, std::string>& names,
                                         IdVector<IdType, std::string>& to, UniqueNames& taken) {
    IdVector<IdType, IdType> renamed;
    for (const std::string& name : names) renamed.push_back(to.push_back(taken.fresh(name)));
    return renamed;
  }

  // Adds the kernels of the callee to the caller, once for all calls of the callee. Exception: if
  // inputs decide sizes of the callee, each call adds its own kernels, because the sizes in their
  // segments may differ.
  IdVector<KernelId, KernelId> kernelsOf(const Program& callee) {
    if (!scalarsOf(callee).empty()) return appendKernels(callee);
    const auto [found, is_new] = kernels_.try_emplace(&callee);
    if (is_new) found->second = appendKernels(callee);
    return found->second;
  }

  IdVector<KernelId, KernelId> appendKernels(const Program& callee) {
    IdVector<KernelId, KernelId> renamed;
    for (const Kernel& kernel : callee.kernels) {
      Fusion segment = kernel.segment;
      substituteScalars(segment, [this](const std::string& symbol) -> std::optional<Size> {
        return isScalarSymbol(symbol) ? std::optional(symbols_.at(symbol)) : std::nullopt;
      });
      renamed.push_back(out_.kernels.push_back(
          {kernel_names_.fresh(kernel.name), std::move(segment), kernel.candidate}));
    }
    return renamed;
  }

  Renaming renamingOf(const Program& callee) {
    const auto renamedBy = [](const auto& new_ids) {
      return [new_ids](auto id) { return new_ids.at(id); };
    };
    Renaming to;
    to.slot = renamedBy(slots_);
    to.token = renamedBy(append(callee.tokens, out_.tokens, token_names_));
    to.event = renamedBy(append(callee.events, out_.events, event_names_));
    to.kernel = renamedBy(kernelsOf(callee));
    to.mesh = [this](MeshId id) { return meshes_.at(id); };
    to.size = [this](const Size& size) { return substituted(size); };
    to.index = [this](const std::string& index) { return symbols_.at(index).symbolName(); };
    return to;
  }

  Program out_;
  std::map<std::string, const Program*> callees_;
  std::map<const Program*, std::set<std::string>> scalars_;
  std::map<const Program*, IdVector<KernelId, KernelId>> kernels_;
  UniqueNames slot_names_{1};
  UniqueNames token_names_{1};
  UniqueNames event_names_{1};
  UniqueNames kernel_names_{1};
  UniqueNames index_names_{1};
  // These maps belong to the Call that is being expanded. They map the symbols of the callee to
  // sizes of the caller, and its meshes and slots to those of the caller.
  std::map<std::string, Size> symbols_;
  IdVector<MeshId, MeshId> meshes_;
  IdVector<SlotId, SlotId> slots_;
};

}  // namespace

Program inlineCalls(const Program& program) { return Inliner(program).run(); }

}  // namespace heddle::host
