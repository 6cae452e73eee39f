#include "host/unroll/check_operands.h"

#include <algorithm>
#include <iterator>

#include "codegen/plan/in_place.h"
#include "host/program/library_op.h"
#include "host/unroll/overlap.h"
#include "host/unroll/view.h"
#include "ir/base/check.h"
#include "ir/sizes/size_solve.h"

namespace heddle::host {
namespace {

int64_t allocated(const TensorDesc& desc) {
  int64_t n = 1;
  for (int64_t size : desc.alloc) n *= size;
  return n;
}

// Checks that the tensor has the memory order and contiguity that the type of the input declares.
// Ignores axes of one element, and axes with the stride 0 that are not declared contiguous. Accepts
// every tensor without elements.
void checkObserved(const Slot& slot, const Layout::Observed& observed, const TensorDesc& got) {
  int64_t inner = 1;  // the stride that the axis has if it is contiguous
  int64_t previous = 0;
  if (got.numel() == 0) return;  // no element is read through the strides
  for (size_t k = observed.order.size(); k-- > 0;) {
    const size_t axis = observed.order[k];
    if (got.alloc[axis] == 1) continue;
    if (got.strides[axis] == 0 && !observed.contiguous.at(axis)) continue;
    HEDDLE_USER_CHECK(got.strides[axis] >= previous,
                      "%{}: strides {} contradict the memory order {} that its type declares",
                      slot.name, str(got.strides), str(observed.order));
    HEDDLE_USER_CHECK(!observed.contiguous.at(axis) || got.strides[axis] == inner,
                      "%{}: axis {} has the stride {}, but its type declares it contiguous: {}",
                      slot.name, axis, got.strides[axis], inner);
    previous = got.strides[axis];
    inner = got.strides[axis] * got.alloc[axis];
  }
}

// Returns the i-th size from the right. i = 0 is the number of columns, i = 1 the number of rows;
// batch axes follow. An axis that does not exist has the size 1.
int64_t fromEnd(const TensorDesc& desc, size_t i) {
  return i < desc.rank() ? desc.sizes[desc.rank() - 1 - i] : 1;
}

void checkProduct(const CallLibrary& x, const UnrolledStep& step) {
  const TensorDesc& a = step.inputs[0].desc;
  const TensorDesc& b = step.inputs[1].desc;
  const TensorDesc& c = step.outputs[0].desc;
  const bool linear = x.function == "linear";
  bool fits = a.rank() >= 2 && b.rank() >= 2 && c.rank() == std::max(a.rank(), b.rank()) &&
              fromEnd(a, 0) == fromEnd(b, linear ? 0 : 1) && fromEnd(a, 1) == fromEnd(c, 1) &&
              fromEnd(b, linear ? 1 : 0) == fromEnd(c, 0) && (!linear || b.rank() == 2);
  for (size_t i = 2; fits && i < c.rank(); ++i) {
    const int64_t extent = fromEnd(c, i);
    fits = (fromEnd(a, i) == extent || fromEnd(a, i) == 1) &&
           (fromEnd(b, i) == extent || fromEnd(b, i) == 1);
  }
  HEDDLE_USER_CHECK(fits, "{} of {} and {} to {}: sizes do not fit", x.function, str(a.sizes),
                    str(b.sizes), str(c.sizes));
  if (step.inputs.size() < 3) return;
  const TensorDesc& bias = step.inputs[2].desc;
  HEDDLE_USER_CHECK(bias.rank() == 1 && bias.sizes[0] == fromEnd(c, 0),
                    "{} to {} with a bias of {}: sizes do not fit", x.function, str(c.sizes),
                    str(bias.sizes));
}

void checkScatter(const CallLibrary& x, const TensorDesc& value, const TensorDesc& index,
                  const TensorDesc& source) {
  const size_t axis = libraryAxis(x);
  bool fits = true;
  for (size_t i = 0; i < value.rank(); ++i) {
    fits =
        fits && (i == axis || source.sizes[i] == value.sizes[i]) &&
        (index.sizes[i] == source.sizes[i] || (index.sizes[i] == 1 && libraryFlag(x, "stretch")));
  }
  HEDDLE_USER_CHECK(
      fits,
      "{} of {} by {} of {} along axis {}: sizes do not fit; the source must have the "
      "sizes of the tensor except along the axis, and the index those of the source "
      "(or 1 with stretch=true)",
      x.function, str(value.sizes), str(index.sizes), str(source.sizes), axis);
}

// Checks that no result overlaps an operand or another result. The call would otherwise overwrite
// elements that it still reads.
void checkLibraryMemory(const CallLibrary& x, const UnrolledStep& step) {
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    for (const View& in : step.inputs) {
      HEDDLE_USER_CHECK(areApart(in, step.outputs[i]),
                        "{}: a result must not overlap the memory of an operand", x.function);
    }
    for (size_t j = 0; j < i; ++j) {
      HEDDLE_USER_CHECK(areApart(step.outputs[j], step.outputs[i]),
                        "{}: a result must not overlap the memory of another result", x.function);
    }
  }
}

// Checks the tensors that a forward call returns and a backward call reads. These are the log-sums,
// and in a backward call also the result o of the forward call. A call without log-sums has nothing
// to check.
void checkForwardResults(const Program& program, const CallLibrary& x, const UnrolledStep& step) {
  const std::optional<SlotId> log_sums = logSumsOf(x);
  if (!log_sums) return;
  const bool backward = isAttentionBackward(x);
  const View& view = backward ? step.inputs[5] : step.outputs[1];
  const std::vector<int64_t>& result =
      backward ? step.inputs[0].desc.sizes : step.outputs[0].desc.sizes;
  const std::vector<int64_t> rows(result.begin(), result.end() - 1);
  HEDDLE_USER_CHECK(view.desc.sizes == rows,
                    "{}: the log-sums %{} have the sizes {}, expected {}: the sizes of the result "
                    "without the width",
                    x.function, program.slots[*log_sums].name, str(view.desc.sizes), str(rows));
  if (!backward) return;
  HEDDLE_USER_CHECK(step.inputs[4].desc.sizes == result,
                    "{}: %{} has the sizes {}, expected {}: the sizes of its gradient %{}",
                    x.function, program.slots[x.inputs[4]].name, str(step.inputs[4].desc.sizes),
                    str(result), program.slots[x.inputs[0]].name);
}

void checkAttention(const Program& program, const CallLibrary& x, const UnrolledStep& step) {
  const size_t first = isAttentionBackward(x) ? 1 : 0;
  const TensorDesc& q = step.inputs[first].desc;
  const TensorDesc& k = step.inputs[first + 1].desc;
  const TensorDesc& v = step.inputs[first + 2].desc;
  const TensorDesc& out = first == 1 ? step.inputs[0].desc : step.outputs[0].desc;
  bool fits = fromEnd(q, 0) == fromEnd(k, 0) && fromEnd(k, 1) == fromEnd(v, 1) &&
              fromEnd(out, 1) == fromEnd(q, 1) && fromEnd(out, 0) == fromEnd(v, 0);
  const bool gqa = libraryFlag(x, "gqa");
  for (size_t i = 2; i < out.rank(); ++i) {
    const int64_t heads = fromEnd(k, i);
    const bool shared = gqa && i == 2 && heads > 0 && fromEnd(q, i) % heads == 0;
    fits = fits && fromEnd(q, i) == fromEnd(out, i) && fromEnd(v, i) == heads &&
           (shared || fromEnd(q, i) == heads);
  }
  HEDDLE_USER_CHECK(fits, "{} of {}, {} and {} {} {}: sizes do not fit", x.function, str(q.sizes),
                    str(k.sizes), str(v.sizes), first == 1 ? "with a gradient of" : "to",
                    str(out.sizes));
  for (size_t i = 0; first == 1 && i < 3; ++i) {
    const TensorDesc& of = step.inputs[i + 1].desc;
    const TensorDesc& gradient = step.outputs[i].desc;
    HEDDLE_USER_CHECK(gradient.sizes == of.sizes, "{}: a gradient of {} for an operand of {}",
                      x.function, str(gradient.sizes), str(of.sizes));
  }
  checkForwardResults(program, x, step);
}

// Checks the number of operands, their numbers of axes, and the axes along which the kernel was
// generated for one element. The kernel would handle only one element even if the operand had more.
// The sizes of an operand that this rank does not hold are not checked.
// The plan of the kernel checks all other axes (codegen/plan/space.h).
void checkUnitAxes(const Fusion& segment, const std::vector<ValueId>& values,
                   const ViewList& operands) {
  HEDDLE_USER_CHECK(values.size() == operands.size(), "kernel {}: expected {} operands, got {}",
                    segment.name, values.size(), operands.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const Value& value = segment.value(values[i]);
    if (value.is_scalar) continue;
    const TensorDesc& desc = operands[i].desc;
    HEDDLE_USER_CHECK(desc.rank() == value.tensor.rank(),
                      "%{} of kernel {}: expected a tensor of rank {}, got rank {}", value.name,
                      segment.name, value.tensor.rank(), desc.rank());
    for (size_t axis = 0; axis < value.tensor.rank(); ++axis) {
      const int64_t size = desc.sizes[axis];
      HEDDLE_USER_CHECK(size == 1 || !desc.held || !isUnitAxis(value.tensor, axis),
                        "axis {} of %{} of kernel {}: expected 1 element, got {}", axis, value.name,
                        segment.name, size);
    }
  }
}

// The extents that a kernel declares for its operands, with the unsharded sizes of the operands.
using Extents = std::vector<std::pair<Size, int64_t>>;

void appendExtents(const Fusion& segment, const std::vector<ValueId>& values,
                   const ViewList& operands, Extents& extents) {
  for (size_t i = 0; i < values.size() && i < operands.size(); ++i) {
    const std::vector<IterDomain>& domain = segment.value(values[i]).tensor.domain;
    const std::vector<int64_t>& sizes = operands[i].desc.global;
    for (size_t axis = 0; axis < domain.size() && axis < sizes.size(); ++axis) {
      extents.emplace_back(domain[axis].extent, sizes[axis]);
    }
  }
}

bool isKnown(const Size& extent, const SizeBindings& sizes) {
  std::vector<std::string> symbols;
  extent.collectSymbols(symbols);
  return std::all_of(symbols.begin(), symbols.end(),
                     [&](const std::string& symbol) { return sizes.contains(symbol); });
}

// Returns whether each extent has the size of its operand if the symbols have the values `sizes`.
bool fits(const Extents& extents, const SizeBindings& sizes) try {
  return std::all_of(extents.begin(), extents.end(), [&](const auto& extent) {
    return extent.first.evaluate(lookupIn(sizes)) == extent.second;
  });
} catch (const UserError&) {
  return false;  // a symbol has no value, or the extent overflows
}

// Returns whether each extent of the operands is a number or a symbol and has the size of its
// operand. Most kernels have only such extents, and for them this is faster than fits().
bool fitAsSymbols(const Fusion& segment, const std::vector<ValueId>& values,
                  const ViewList& operands, const SizeBindings& sizes) {
  for (size_t i = 0; i < values.size() && i < operands.size(); ++i) {
    const std::vector<IterDomain>& domain = segment.value(values[i]).tensor.domain;
    const std::vector<int64_t>& global = operands[i].desc.global;
    for (size_t axis = 0; axis < domain.size() && axis < global.size(); ++axis) {
      const Size& extent = domain[axis].extent;
      if (extent.isConstant(global[axis])) continue;
      if (extent.kind() != Size::Kind::Symbol) return false;
      const auto found = sizes.find(extent.symbolName());
      if (found == sizes.end() || found->second != global[axis]) return false;
    }
  }
  return true;
}

// Checks an input and an output of a kernel that may share memory. They must be the same view, and
// the kernel must be able to work in place (codegen::InPlaceRules). The comparison of the views
// holds for all runs of a plan, because their distance depends on no late input
// (host/unroll/late_scalars.h).
void checkSharedMemory(const Fusion& segment, codegen::InPlaceRules& rules,
                       const UnrolledStep& step, size_t input, size_t output) {
  const std::string& in = segment.value(segment.inputs()[input]).name;
  const std::string& out = segment.value(segment.outputs()[output]).name;
  const std::string why = rules.whyNot(input, output);
  HEDDLE_USER_CHECK(why.empty(), "%{} and %{} of kernel {} share memory, but {}", in, out,
                    segment.name, why);
  HEDDLE_USER_CHECK(isSameView(step.inputs[input], step.outputs[output]),
                    "%{} and %{} of kernel {} are different views of the same memory", in, out,
                    segment.name);
}

}  // namespace

void checkInput(const Slot& slot, const TensorDesc& expected, const TensorDesc& got) {
  HEDDLE_USER_CHECK(got.dtype == expected.dtype, "input %{} is {}, got {}", slot.name,
                    name(expected.dtype), name(got.dtype));
  HEDDLE_USER_CHECK(got.rank() == expected.rank(), "input %{} has rank {}, got rank {}", slot.name,
                    expected.rank(), got.rank());
  HEDDLE_USER_CHECK(got.sizes == expected.sizes, "input %{} has the local sizes {}, got {}",
                    slot.name, str(expected.sizes), str(got.sizes));
  HEDDLE_USER_CHECK(got.alloc.size() == got.rank() && got.strides.size() == got.rank(),
                    "input %{}: a descriptor with {} allocated sizes and {} strides for rank {}",
                    slot.name, got.alloc.size(), got.strides.size(), got.rank());
  for (size_t i = 0; i < got.rank(); ++i) {
    HEDDLE_USER_CHECK(got.alloc[i] >= got.sizes[i], "input %{}: axis {} allocates {} for size {}",
                      slot.name, i, got.alloc[i], got.sizes[i]);
    HEDDLE_USER_CHECK(got.strides[i] >= 0, "input %{}: axis {} has the stride {}", slot.name, i,
                      got.strides[i]);
  }
  if (slot.tensor.layout.observed) checkObserved(slot, *slot.tensor.layout.observed, got);
}

// Checks only sizes and memory. verifyLibrary() (host/program/library_op.h) has already checked the
// function, its operands and its attributes.
void checkLibrary(const Program& program, const CallLibrary& x, const UnrolledStep& step) {
  const OpDef& op = *findLibraryOp(x.function);
  checkLibraryMemory(x, step);
  const auto in = [&](size_t i) -> const TensorDesc& { return step.inputs.at(i).desc; };
  const TensorDesc& out = step.outputs.at(0).desc;
  if (op.kind == OpKind::Matmul) return checkProduct(x, step);
  if (isAttention(x)) return checkAttention(program, x, step);
  std::vector<int64_t> expected = in(0).sizes;
  if (const std::optional<int64_t> first = libraryCount(x, "first")) {
    int64_t& extent = expected[libraryAxis(x)];
    extent = std::min(extent, *first);
  }
  HEDDLE_USER_CHECK(expected == out.sizes, "{} of {} to {}: sizes do not fit", x.function,
                    str(in(0).sizes), str(out.sizes));
  if (op.kind == OpKind::Scatter) checkScatter(x, in(0), in(1), in(2));
}

void checkLaunch(const Fusion& segment, const UnrolledStep& step) {
  const auto isEmpty = [](const View& out) { return out.desc.numel() == 0; };
  // Nothing is launched if there is nothing to compute.
  if (std::all_of(step.outputs.begin(), step.outputs.end(), isEmpty)) return;
  checkUnitAxes(segment, segment.inputs(), step.inputs);
  checkUnitAxes(segment, segment.outputs(), step.outputs);
  codegen::InPlaceRules rules(segment);
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    for (size_t k = 0; k < step.outputs.size(); ++k) {
      if (!areApart(step.inputs[i], step.outputs[k])) {
        checkSharedMemory(segment, rules, step, i, k);
      }
    }
  }
}

const SizeBindings& sizesInside(const Fusion& segment, const UnrolledStep& step,
                                const SizeBindings& program, SizeBindings& own) {
  if (fitAsSymbols(segment, segment.inputs(), step.inputs, program) &&
      fitAsSymbols(segment, segment.outputs(), step.outputs, program)) {
    return program;
  }
  Extents extents;
  appendExtents(segment, segment.inputs(), step.inputs, extents);
  appendExtents(segment, segment.outputs(), step.outputs, extents);
  if (fits(extents, program)) return program;
  own.clear();
  solveSizes(extents, own);
  std::erase_if(extents, [&](const auto& extent) { return !isKnown(extent.first, own); });
  if (!fits(extents, own)) own.clear();
  return own;
}

std::vector<SizeGuard> knownGuards(const Fusion& segment, const SizeBindings& sizes) {
  std::vector<SizeGuard> known;
  std::ranges::copy_if(segment.guards, std::back_inserter(known), [&](const SizeGuard& guard) {
    return isKnown(guard.a, sizes) && isKnown(guard.b, sizes);
  });
  return known;
}

void checkWritten(const Slot& slot, const View& view) {
  const std::optional<size_t> axis = repeatedAxis(view.desc);
  HEDDLE_USER_CHECK(!axis, "%{} is written, but its {} elements along axis {} share one address",
                    slot.name, view.desc.sizes[*axis], *axis);
}

void checkCopy(const UnrolledStep& step) {
  const TensorDesc& in = step.inputs.front().desc;
  const TensorDesc& out = step.outputs.front().desc;
  HEDDLE_USER_CHECK(in.dtype == out.dtype, "a copy of {} to {}: the dtypes must be equal",
                    name(in.dtype), name(out.dtype));
  HEDDLE_USER_CHECK(in.sizes == out.sizes, "a copy of {} to {}: the sizes must be equal",
                    str(in.sizes), str(out.sizes));
  const View& from = step.inputs.front();
  const View& to = step.outputs.front();
  HEDDLE_USER_CHECK(areApart(from, to) || isSameView(from, to),
                    "a copy between different views of the same memory");
}

void checkDense(const View& view, std::string_view what) {
  HEDDLE_USER_CHECK(!repeatedAxis(view.desc),
                    "{} of a view that repeats elements: {} with strides {}", what,
                    str(view.desc.alloc), str(view.desc.strides));
  HEDDLE_USER_CHECK(view.desc.allocElements() == allocated(view.desc) || allocated(view.desc) == 0,
                    "{} of a view with gaps: {} with strides {}", what, str(view.desc.alloc),
                    str(view.desc.strides));
}

void checkReadBack(const Slot& slot, const UnrolledStep& step, int64_t elements) {
  const TensorDesc& in = step.inputs.front().desc;
  HEDDLE_USER_CHECK(in.numel() == elements, "%{} has the sizes {}, expected {} element{}",
                    slot.name, str(in.sizes), elements == 1 ? "one" : std::to_string(elements),
                    elements == 1 ? "" : "s");
  int64_t inner = 1;
  for (size_t axis = in.rank(); elements > 1 && axis-- > 0;) {
    HEDDLE_USER_CHECK(in.sizes[axis] == 1 || in.strides[axis] == inner,
                      "%{} with strides {} has gaps", slot.name, str(in.strides));
    inner *= in.sizes[axis];
  }
}

}  // namespace heddle::host
