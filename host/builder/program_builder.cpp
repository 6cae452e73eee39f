#include "host/builder/program_builder.h"

#include <algorithm>

#include "host/builder/builder_state.h"
#include "ir/base/lexer.h"
#include "ir/graph/size_scalars.h"
#include "ir/text/declaration_rules.h"
#include "ir/text/text_pieces.h"

namespace heddle::host {
namespace {

TensorView tensorView(DType dtype, std::vector<Size> sizes) {
  TensorView view;
  view.dtype = dtype;
  for (Size& size : sizes) view.domain.push_back({std::move(size), IterKind::Iteration});
  return view;
}

// Returns the slot of a declared tensor. Throws UserError if the type is not legal. `of` says
// whether the tensor is an input of the program.
Slot tensorSlot(const std::string& declaration, std::string name, TensorType type,
                const Meshes& meshes, OrderOf of) {
  const std::string why = typeViolation(type.tensor, meshes, of);
  HEDDLE_USER_CHECK(why.empty(), "{}: {}", declaration, why);
  if (type.tensor.sharding) type.tensor.sharding->axes.resize(type.tensor.rank());
  return {std::move(name), false, std::move(type.tensor), std::move(type.alloc), {}};
}

std::string declarationOf(std::string_view what, std::string_view name) {
  return fmt::format("{} {}", what, printValueName(name));
}

template <class IdType>
IdType addName(IdVector<IdType, std::string>& names, std::string name, std::string_view what) {
  HEDDLE_USER_CHECK(std::find(names.begin(), names.end(), name) == names.end(),
                    "two {} are called {}", what, name);
  return names.push_back(std::move(name));
}

}  // namespace

TensorType::TensorType(DType dtype, std::vector<Size> sizes, std::optional<Sharding> sharding,
                       std::vector<Size> allocated)
    : tensor(tensorView(dtype, std::move(sizes))), alloc(std::move(allocated)) {
  tensor.sharding = std::move(sharding);
}

ProgramBuilder::ProgramBuilder(std::string program_name) : state_(std::make_unique<State>()) {
  state_->program.name = std::move(program_name);
}
ProgramBuilder::~ProgramBuilder() = default;

ProgramBuilder::State& ProgramBuilder::state() const {
  HEDDLE_USER_CHECK(state_ != nullptr, "this ProgramBuilder has already built its program");
  return *state_;
}

Program ProgramBuilder::build() && {
  State& s = state();
  HEDDLE_USER_CHECK(s.open.size() == 1 && !s.in_group && !s.on.valid(),
                    "program {}: build() is called inside of a body", s.program.name);
  s.program.body = std::move(s.open.front());
  // The state is taken from the builder before the check, so the builder is unusable even if
  // verifyStructure() throws.
  const std::unique_ptr<State> built = std::move(state_);
  verifyStructure(built->program);
  return std::move(built->program);
}

// --- declarations ------------------------------------------------------------------------------

MeshRef ProgramBuilder::mesh(DeviceMesh mesh) {
  State& s = state();
  const std::string declaration = "mesh @" + mesh.name;
  s.refuse(declaration, isWord(mesh.name) ? "" : "the name is not a word");
  s.refuse(declaration, meshViolation(s.program.meshes, mesh));
  const MeshId id = s.program.meshes.push_back(std::move(mesh));
  for (Kernel& kernel : s.program.kernels) kernel.segment.meshes = s.program.meshes;
  return s.ref(id);
}

KernelRef ProgramBuilder::kernel(std::string name, Fusion segment) {
  State& s = state();
  const std::string declaration = "kernel @" + name;
  Kernel kernel{std::move(name), std::move(segment)};
  s.refuse(declaration, kernelSizesViolation(kernel));
  s.adoptMeshes(declaration, kernel.segment);
  heddle::forEachSize(kernel.segment, [&](const Size& size) {
    s.refuse(declaration, s.hasLoopIndex(size) ? "a size contains the index of a loop" : "");
  });
  s.refuse(declaration, s.names.addKernel(kernel.name));
  return s.ref(s.program.kernels.push_back(std::move(kernel)));
}

SlotRef ProgramBuilder::input(std::string name, TensorType type) {
  State& s = state();
  const std::string declaration = declarationOf("input", name);
  const SlotRef slot = s.declare(
      declaration,
      tensorSlot(declaration, std::move(name), std::move(type), s.program.meshes, OrderOf::Input));
  for (const Size& size : s.program.slots[slot.id()].tensor.sizes()) {
    std::vector<std::string> symbols;
    size.collectSymbols(symbols);
    s.size_symbols.insert(symbols.begin(), symbols.end());
  }
  s.program.inputs.push_back(slot.id());
  return slot;
}

SlotRef ProgramBuilder::scalarInput(std::string name, DType dtype,
                                    std::optional<Scalar> default_value) {
  State& s = state();
  const std::string declaration = declarationOf("input", name);
  Slot slot{std::move(name), true, tensorView(dtype, {}), {}, {}};
  if (default_value) {
    const std::string why = defaultViolation(dtype, *default_value);
    HEDDLE_USER_CHECK_CODE(Type, why.empty(), "{}: {}", declaration, why);
    slot.default_value = storedDefault(dtype, *default_value);
  }
  const SlotRef ref = s.declare(declaration, std::move(slot));
  s.program.inputs.push_back(ref.id());
  return ref;
}

SlotRef ProgramBuilder::tensor(std::string name, TensorType type) {
  State& s = state();
  const std::string declaration = declarationOf("slot", name);
  return s.declare(declaration, tensorSlot(declaration, std::move(name), std::move(type),
                                           s.program.meshes, OrderOf::Value));
}

SlotRef ProgramBuilder::scalar(std::string name, DType dtype) {
  const std::string declaration = declarationOf("slot", name);
  return state().declare(declaration, {std::move(name), true, tensorView(dtype, {}), {}, {}});
}

SlotRef ProgramBuilder::list(std::string name, const Size& size) {
  State& s = state();
  const std::string declaration = declarationOf("slot", name);
  Slot slot = tensorSlot(declaration, std::move(name), {DType::I64, {size}}, s.program.meshes,
                         OrderOf::Value);
  slot.is_scalar = true;
  return s.declare(declaration, std::move(slot));
}

void ProgramBuilder::output(SlotRef slot) {
  State& s = state();
  s.program.outputs.push_back(s.id(slot));
}

void ProgramBuilder::output(SlotRef slot, SlotRef input, bool required) {
  State& s = state();
  const SlotId id = s.id(input);
  const std::vector<SlotId>& inputs = s.program.inputs;
  const std::string name = printValueName(s.program.slots[id].name);
  s.refuse(
      declarationOf("output", s.program.slots[s.id(slot)].name),
      std::find(inputs.begin(), inputs.end(), id) == inputs.end() ? noInput("'" + name + "'") : "");
  s.program.reuses[s.program.outputs.size()] = {id, required};
  output(slot);
}

void ProgramBuilder::sizeDefault(const std::string& symbol, int64_t value) {
  State& s = state();
  const std::string declaration = "default of " + Size(symbol).symbolName();
  s.refuse(declaration, defaultSizeViolation(symbol, value));
  s.refuse(declaration, s.names.addSizeDefault(symbol));
  s.size_symbols.insert(symbol);
  s.program.size_defaults.emplace_back(symbol, value);
}

void ProgramBuilder::guardEqual(const Size& a, const Size& b, std::string text) {
  State& s = state();
  s.program.guards.push_back({s.resolved(a), s.resolved(b), std::move(text)});
}

void ProgramBuilder::guardAtMost(const Size& a, const Size& b, std::string text) {
  guardEqual(a, b, std::move(text));
  state().program.guards.back().at_most = true;
}

TokenRef ProgramBuilder::token(std::string name) {
  State& s = state();
  return s.ref(addName(s.program.tokens, std::move(name), "tokens"));
}

EventRef ProgramBuilder::event(std::string name) {
  State& s = state();
  return s.ref(addName(s.program.events, std::move(name), "events"));
}

// --- parts of types and instructions -----------------------------------------------------------

Sharding ProgramBuilder::shard(MeshRef mesh, std::vector<std::vector<MeshAxis>> axes,
                               std::vector<Sharding::Partial> partial) const {
  return {state().id(mesh), std::move(axes), std::move(partial), {}};
}

Team ProgramBuilder::team(MeshRef mesh, std::vector<MeshAxis> axes) const {
  return {state().id(mesh), std::move(axes)};
}

Size ProgramBuilder::extent(MeshRef mesh, MeshAxis axis) const {
  const State& s = state();
  return Size::symbol(fmt::format("@{}.{}", s.program.meshes[s.id(mesh)].name, name(axis)));
}

Size ProgramBuilder::coordinate(MeshRef mesh, MeshAxis axis) const {
  return Size::symbol(extent(mesh, axis).symbolName() + ".index");
}

}  // namespace heddle::host
