#include "host/builder/builder_state.h"

#include <algorithm>
#include <atomic>

#include "host/program/visit.h"
#include "ir/base/lexer.h"

namespace heddle::host {
namespace {

int64_t nextNumber() {
  static std::atomic<int64_t> last{0};
  return ++last;
}

// The first character of the symbols that stand for loop indices (State::Loop). No symbol of a
// parsed program starts with this character.
constexpr char kLoopMark = '#';

}  // namespace

ProgramBuilder::State::State() : number(nextNumber()), open(1) {}

ProgramBuilder::State::Scope::Scope(State& state)
    : state_(state),
      open_(state.open.size()),
      instructions_(state.open.back().size()),
      loops_(state.loops.size()),
      on_(state.on),
      in_group_(state.in_group),
      next_index_(state.next_index) {}

ProgramBuilder::State::Scope::~Scope() {
  state_.loops.resize(loops_);
  state_.on = on_;
  state_.in_group = in_group_;
  if (is_kept_) return;
  state_.open.resize(open_);
  std::vector<Instruction>& body = state_.open.back();
  body.erase(body.begin() + static_cast<std::ptrdiff_t>(instructions_), body.end());
  state_.next_index = next_index_;
}

SlotRef ProgramBuilder::State::declare(const std::string& declaration, Slot slot) {
  refuse(declaration, slotSizesViolation(slot.tensor));
  if (!slot.alloc.empty()) refuse(declaration, allocViolation(slot));
  try {
    for (IterDomain& axis : slot.tensor.domain) axis.extent = resolved(axis.extent);
    for (Size& size : slot.alloc) size = resolved(size);
  } catch (const UserError& error) {
    userErrorWith(error.code(), "{}: {}", declaration, error.what());
  }
  refuse(declaration, names.addSlot(slot.name));
  return ref(program.slots.push_back(std::move(slot)));
}

void ProgramBuilder::State::adoptMeshes(const std::string& declaration, Fusion& segment) const {
  const Meshes& meshes = program.meshes;
  IdVector<MeshId, MeshId> new_id;
  for (const DeviceMesh& mesh : segment.meshes) {
    const auto found = std::find_if(meshes.begin(), meshes.end(), [&](const DeviceMesh& candidate) {
      return candidate.name == mesh.name;
    });
    HEDDLE_USER_CHECK(found != meshes.end(), "{}: there is no mesh @{}", declaration, mesh.name);
    HEDDLE_USER_CHECK(*found == mesh, "{}: mesh {} differs from mesh {} of the program",
                      declaration, mesh.str(), found->str());
    new_id.push_back(MeshId(found - meshes.begin()));
  }
  for (ValueId id : segment.values().ids()) {
    std::optional<Sharding>& sharding = segment.mutableValue(id).tensor.sharding;
    if (sharding) sharding->mesh = new_id[sharding->mesh];
  }
  segment.meshes = meshes;
}

std::vector<SlotId> ProgramBuilder::State::ids(const Slots& slots) const {
  std::vector<SlotId> out;
  for (const SlotRef& slot : slots) out.push_back(id(slot));
  return out;
}

TokenId ProgramBuilder::State::tokenOr(const std::optional<TokenRef>& token) {
  return token ? id(*token) : addDefaultName(program.tokens, "t");
}

void ProgramBuilder::State::addCallee(const Program& callee) {
  for (const Program& known : program.callees) {
    if (known.name != callee.name) continue;
    HEDDLE_USER_CHECK(sameProgram(known, callee), "{}", twoPrograms(callee.name));
    return;
  }
  const std::string why = calleeViolation(program, callee);
  HEDDLE_USER_CHECK(why.empty(), "{}", why);
  program.callees.push_back(callee);
}

std::vector<Instruction> ProgramBuilder::State::collect(const Body& body) {
  HEDDLE_USER_CHECK(open.size() < TokenStream::kMaxDepth, "bodies are nested deeper than {}",
                    TokenStream::kMaxDepth);
  open.emplace_back();
  on = kNoMesh;
  if (body) body();
  std::vector<Instruction> out = std::move(open.back());
  open.pop_back();
  return out;
}

Size ProgramBuilder::State::beginLoop(const std::string& index) {
  loops.push_back({fmt::format("{}{}:{}", kLoopMark, nextNumber(), index), index});
  return Size::symbol(loops.back().symbol);
}

Size ProgramBuilder::State::resolved(const Size& size) const {
  return size.substitute([&](const std::string& symbol) -> std::optional<Size> {
    if (!symbol.starts_with(kLoopMark)) return std::nullopt;
    for (const Loop& loop : loops) {
      if (loop.symbol == symbol) return Size::symbol(loop.index);
    }
    userError("the loop index {} is used outside of the body of its loop",
              symbol.substr(symbol.find(':') + 1));
  });
}

void ProgramBuilder::State::resolve(Instruction& x) const {
  Renaming renaming;
  renaming.size = [&](const Size& size) { return resolved(size); };
  rename(x, renaming);
}

bool ProgramBuilder::State::hasLoopIndex(const Size& size) {
  std::vector<std::string> symbols;
  size.collectSymbols(symbols);
  return std::any_of(symbols.begin(), symbols.end(),
                     [](const std::string& symbol) { return symbol.starts_with(kLoopMark); });
}

std::string ProgramBuilder::State::unusedIndex() const {
  const auto is_used = [&](const std::string& index) {
    return size_symbols.contains(index) ||
           std::any_of(loops.begin(), loops.end(),
                       [&](const Loop& loop) { return loop.index == index; });
  };
  for (const char* index : {"i", "j", "k"}) {
    if (!is_used(index)) return index;
  }
  for (int n = 1;; ++n) {
    std::string index = fmt::format("i{}", n);
    if (!is_used(index)) return index;
  }
}

}  // namespace heddle::host
