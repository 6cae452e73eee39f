#include "host/plan/bind_inputs.h"

#include <algorithm>
#include <cstdint>

#include "host/plan/size_inputs.h"
#include "host/unroll/scope.h"
#include "ir/base/check.h"
#include "ir/sizes/size_solve.h"

namespace heddle::host {
namespace {

std::string axisOf(const Slot& slot, size_t axis) {
  return fmt::format("axis {} of %{}", axis, slot.name);
}

void bindSymbols(const Slot& slot, const std::vector<int64_t>& global, SizeBindings& sizes,
                 SizeSources& sources) {
  for (size_t axis = 0; axis < global.size(); ++axis) {
    const Size& extent = slot.tensor.domain[axis].extent;
    if (extent.kind() != Size::Kind::Symbol) continue;
    const std::string& symbol = extent.symbolName();
    auto [at, is_first] = sizes.emplace(symbol, global[axis]);
    if (is_first) {
      sources[symbol] = axisOf(slot, axis);
    } else {
      HEDDLE_USER_CHECK_CODE(ShapeMismatch, at->second == global[axis],
                             "size {} is {} in {} but {} in {}", symbol, at->second,
                             sources[symbol], global[axis], axisOf(slot, axis));
    }
  }
}

// Returns a text such as " (heads = 4 by default)" that lists the symbols of an extent whose values
// come from defaults. `given` holds the symbols whose values come from inputs.
std::string defaultsIn(const Size& extent, const SizeBindings& given, const SizeBindings& sizes) {
  std::vector<std::string> symbols;
  extent.collectSymbols(symbols);
  std::string list;
  for (const std::string& symbol : symbols) {
    const auto at = sizes.find(symbol);
    if (given.count(symbol) > 0 || at == sizes.end()) continue;
    list += fmt::format("{}{} = {}", list.empty() ? " (" : ", ", symbol, at->second);
  }
  return list.empty() ? list : list + " by default)";
}

// Checks the extents that are constants or expressions. Requires that every symbol has a value.
// `given` holds the symbols whose values come from inputs.
void checkExtents(const Slot& slot, const std::vector<int64_t>& global, const SizeBindings& given,
                  const SizeBindings& sizes) {
  for (size_t axis = 0; axis < global.size(); ++axis) {
    const Size& extent = slot.tensor.domain[axis].extent;
    if (extent.kind() == Size::Kind::Symbol) continue;
    const int64_t expected = extent.evaluate(lookupIn(sizes));
    HEDDLE_USER_CHECK_CODE(ShapeMismatch, global[axis] == expected,
                           "{} has size {}, the program expects {}{}{}", axisOf(slot, axis),
                           global[axis], expected, extent.isConstant() ? "" : " = " + extent.str(),
                           defaultsIn(extent, given, sizes));
  }
}

// Computes the values of symbols that occur only inside expressions, such as h in an extent 2*h.
void solveSymbols(const Program& program, UnrollRequest& request) {
  std::vector<std::pair<Size, int64_t>> extents;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const Slot& slot = program.slots.at(program.inputs[i]);
    for (size_t axis = 0; axis < request.inputs[i].global.size(); ++axis) {
      extents.emplace_back(slot.tensor.domain[axis].extent, request.inputs[i].global[axis]);
    }
  }
  solveSizes(extents, request.sizes);
}

bool isSplit(const Slot& slot) {
  if (!slot.tensor.sharding) return false;
  for (size_t axis = 0; axis < slot.tensor.rank(); ++axis) {
    if (slot.tensor.sharding->isSharded(axis)) return true;
  }
  return false;
}

void checkCount(const Program& program, size_t given) {
  bool fits = given <= program.inputs.size();
  for (size_t i = given; i < program.inputs.size(); ++i) {
    fits = fits && program.slots.at(program.inputs[i]).default_value;
  }
  HEDDLE_USER_CHECK(fits, "program {} takes {} inputs, got {}", program.name, program.inputs.size(),
                    given);
}

void checkKind(const Slot& slot, size_t position, const Argument& argument) {
  const bool is_scalar = std::holds_alternative<Scalar>(argument);
  HEDDLE_USER_CHECK_CODE(Type, is_scalar == slot.is_scalar, "input {} (%{}) is a {}, got a {}",
                         position, slot.name, slot.is_scalar ? "scalar" : "tensor",
                         is_scalar ? "scalar" : "tensor");
}

void checkMemory(const Slot& slot, const Tensor& tensor) {
  HEDDLE_USER_CHECK_CODE(
      ShapeMismatch, !tensor.in_host_memory || tensor.desc.rank() == 0,
      "input %{} is a tensor {} in host memory; only a tensor without axes can be "
      "passed by value, toDevice() copies others",
      slot.name, str(tensor.desc.sizes));
}

// Completes a descriptor (see bindInputs()), and checks the properties that do not depend on sizes.
TensorDesc complete(const Slot& slot, const TensorDesc& given) {
  TensorDesc desc = given;
  HEDDLE_USER_CHECK_CODE(Type, desc.dtype == slot.tensor.dtype, "input %{} is {}, got {}",
                         slot.name, name(slot.tensor.dtype), name(desc.dtype));
  HEDDLE_USER_CHECK_CODE(ShapeMismatch, desc.rank() == slot.tensor.rank(),
                         "input %{} has {} axes, got {} axes {}", slot.name, slot.tensor.rank(),
                         desc.rank(), str(desc.sizes));
  if (desc.global.empty()) {
    HEDDLE_USER_CHECK(!isSplit(slot),
                      "input %{} is sharded: its descriptor must give the unsharded sizes (global)",
                      slot.name);
    desc.global = desc.sizes;
  }
  if (desc.alloc.empty()) desc.alloc = desc.sizes;
  if (desc.strides.empty() && desc.alloc.size() == desc.rank()) {
    desc.strides = stridesFor(desc.alloc, rowMajor(desc.rank()));
  }
  if (desc.offset.empty()) desc.offset.assign(desc.rank(), 0);
  const bool ranks_agree = desc.global.size() == desc.rank() && desc.alloc.size() == desc.rank() &&
                           desc.strides.size() == desc.rank() && desc.offset.size() == desc.rank();
  HEDDLE_USER_CHECK_CODE(ShapeMismatch, ranks_agree,
                         "input %{}: the lists of its descriptor differ in length", slot.name);
  return desc;
}

// Returns whether the caller has given an offset. Zeros do not count, because complete() also sets
// zeros.
bool isGiven(const std::vector<int64_t>& offset) {
  return std::any_of(offset.begin(), offset.end(), [](int64_t first) { return first != 0; });
}

// Checks that the descriptor is the block that the sharding of the slot gives to this rank, and
// that its allocated sizes and strides are possible. Then sets the offset and TensorDesc::held. The
// caller's strides do not change.
void checkBlock(const Slot& slot, const Scope& scope, TensorDesc& desc) {
  const TensorDesc expected = scope.describe(slot);
  HEDDLE_USER_CHECK_CODE(ShapeMismatch, desc.sizes == expected.sizes,
                         "input %{} of global sizes {}: rank {} holds the block {}, got {}",
                         slot.name, str(desc.global), scope.rank(), str(expected.sizes),
                         str(desc.sizes));
  const bool has_offset = expected.held && expected.numel() > 0 && isGiven(desc.offset);
  HEDDLE_USER_CHECK_CODE(
      ShapeMismatch, !has_offset || desc.offset == expected.offset,
      "input %{} of global sizes {}: rank {} holds the block at {}, got the one at {}", slot.name,
      str(desc.global), scope.rank(), str(expected.offset), str(desc.offset));
  for (size_t axis = 0; axis < desc.rank(); ++axis) {
    HEDDLE_USER_CHECK_CODE(ShapeMismatch, desc.alloc[axis] >= desc.sizes[axis],
                           "input %{}: axis {} has size {} but an allocation of {}", slot.name,
                           axis, desc.sizes[axis], desc.alloc[axis]);
    HEDDLE_USER_CHECK_CODE(ShapeMismatch, desc.strides[axis] >= 0,
                           "input %{}: axis {} has the negative stride {}", slot.name, axis,
                           desc.strides[axis]);
  }
  desc.offset = expected.offset;
  desc.held = expected.held;
}

// Checks that the input has the memory order and contiguity for which the program was compiled. An
// axis of size 1 may have any stride.
void checkObserved(const Slot& slot, const TensorDesc& desc) {
  if (!slot.tensor.layout.observed || desc.numel() == 0) return;
  const Layout::Observed& observed = *slot.tensor.layout.observed;
  int64_t inner_span = 1;
  int64_t inner_stride = 0;
  for (size_t i = observed.order.size(); i-- > 0;) {
    const size_t axis = observed.order[i];
    if (desc.sizes[axis] == 1) {
      inner_span *= desc.alloc[axis];  // alloc is more than 1 if the axis is padded
      continue;
    }
    const int64_t stride = desc.strides[axis];
    const bool contiguous = axis < observed.contiguous.size() && observed.contiguous[axis];
    if (stride == 0 && !contiguous) continue;  // such an axis fits at any place of the order
    HEDDLE_USER_CHECK_CODE(
        ShapeMismatch, contiguous ? stride == inner_span : stride >= inner_stride,
        "input %{}: axis {} has stride {}, its layout in the program requires {}{}", slot.name,
        axis, stride, contiguous ? "" : "at least ", contiguous ? inner_span : inner_stride);
    inner_span = stride * desc.alloc[axis];
    inner_stride = stride;
  }
}

}  // namespace

bool isAtElement(const Tensor& tensor) {
  const auto bytes = static_cast<uintptr_t>(sizeOf(tensor.desc.dtype));
  return tensor.in_host_memory || tensor.desc.numel() == 0 ||
         reinterpret_cast<uintptr_t>(tensor.data) % bytes == 0;
}

void completeSizes(const Program& program, SizeBindings& sizes, const SizeSources& sources) {
  for (const auto& [symbol, value] : program.size_defaults) sizes.emplace(symbol, value);
  checkGuards(program.guards, sizes, sources);
}

UnrollRequest bindInputs(const Program& program, const InputFacts& facts,
                         const std::vector<Argument>& inputs, int64_t rank, int64_t ranks) {
  checkCount(program, inputs.size());
  // The first loop finds the sizes of all inputs. The checks of the second loop need every size.
  UnrollRequest request;
  request.rank = rank;
  request.ranks = ranks;
  request.inputs.resize(program.inputs.size());
  SizeSources sources;
  request.late = facts.late;
  facts.size_inputs.bind(inputs, request.sizes);
  facts.size_inputs.addSources(sources);
  const auto slotOf = [&](size_t i) -> const Slot& { return program.slots.at(program.inputs[i]); };
  for (size_t i = 0; i < inputs.size(); ++i) {
    checkKind(slotOf(i), i, inputs[i]);
    if (slotOf(i).is_scalar) continue;
    checkMemory(slotOf(i), std::get<Tensor>(inputs[i]));
    request.inputs[i] = complete(slotOf(i), std::get<Tensor>(inputs[i]).desc);
    bindSymbols(slotOf(i), request.inputs[i].global, request.sizes, sources);
  }
  solveSymbols(program, request);
  const SizeBindings given = request.sizes;
  completeSizes(program, request.sizes, sources);
  const Scope scope(program.meshes, request.sizes, rank, ranks);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (slotOf(i).is_scalar) continue;
    const Tensor& tensor = std::get<Tensor>(inputs[i]);
    checkExtents(slotOf(i), request.inputs[i].global, given, request.sizes);
    checkBlock(slotOf(i), scope, request.inputs[i]);
    checkObserved(slotOf(i), request.inputs[i]);
    HEDDLE_USER_CHECK(tensor.data != nullptr || request.inputs[i].numel() == 0,
                      "input {} (%{}) has no data", i, slotOf(i).name);
    HEDDLE_USER_CHECK(isAtElement(tensor),
                      "input {} (%{}): its address is not a multiple of {} bytes, the size of an "
                      "element of {}",
                      i, slotOf(i).name, sizeOf(tensor.desc.dtype), name(tensor.desc.dtype));
  }
  return request;
}

Program concretized(Program program, int64_t ranks) {
  std::vector<Program*> todo{&program};
  for (size_t i = 0; i < todo.size(); ++i) {
    for (DeviceMesh& mesh : todo[i]->meshes) concretizeMesh(mesh, ranks);
    for (Kernel& kernel : todo[i]->kernels) {
      for (DeviceMesh& mesh : kernel.segment.meshes) concretizeMesh(mesh, ranks);
    }
    for (Program& callee : todo[i]->callees) todo.push_back(&callee);
  }
  return program;
}

}  // namespace heddle::host
