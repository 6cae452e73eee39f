// The members of PlanBuilder for the outputs of a run and the preallocated tensors of the caller.
#include <algorithm>
#include <limits>

#include "host/lower/lower_reuses.h"
#include "host/plan/plan_builder.h"
#include "host/unroll/view.h"
#include "ir/base/check.h"

namespace heddle::host {

namespace {

// Returns whether the strides never increase in the order `order`. Axes with at most one element do
// not count.
bool hasOrder(const TensorDesc& desc, const AxisOrder& order) {
  int64_t outer = std::numeric_limits<int64_t>::max();
  for (int64_t axis : order) {
    const size_t i = axis;
    if (desc.sizes[i] <= 1) continue;
    if (desc.strides[i] > outer) return false;
    outer = desc.strides[i];
  }
  return true;
}

// Returns the descriptor of all elements of a tensor, with padding.
TensorDesc allocationOf(const TensorDesc& desc) {
  TensorDesc allocation = desc;
  allocation.sizes = allocation.alloc;
  return allocation;
}

}  // namespace

// Returns whether the program can write an output directly into the caller's tensor `given`. All of
// these conditions must hold:
// - The program allocates the buffer of the output, and the output begins at its first byte.
// - The output has the strides and the allocated sizes of `given`.
// - `given` has at least as many bytes as the buffer.
// - No preallocated tensor of another output replaces the buffer.
bool PlanBuilder::landsInPlace(const Plan::Output& output, const TensorDesc& given) const {
  const BufferId id = bufferOf(output.address.pointer);
  if (!unrolled_.buffers.has(id)) return false;  // the address depends on a late input
  const Buffer& buffer = unrolled_.buffers.at(id);
  return buffer.origin == Buffer::Origin::Allocated && output.address.offset == 0 &&
         output.desc.strides == given.strides && output.desc.alloc == given.alloc &&
         buffer.bytes <= given.allocBytes() && !substituted_[id];
}

// Checks that the caller's tensor `given` can store output `i`.
void PlanBuilder::checkPreallocated(size_t i, const TensorDesc& given) const {
  const Plan::Output& output = plan_->outputs[i];
  const Slot& type = slot(program_.outputs[i]);
  const std::string& name = outputName(program_, i);
  HEDDLE_USER_CHECK(!output.scalar.valid(),
                    "output {} (%{}) is a scalar and cannot be preallocated", i, name);
  HEDDLE_USER_CHECK(!program_.reuses.contains(i),
                    "output {} (%{}) is stored in an input (%{}), so it cannot be preallocated", i,
                    name, slot(program_.reuses.at(i).input).name);
  HEDDLE_USER_CHECK_CODE(Type, given.dtype == output.desc.dtype,
                         "output {} (%{}) is {}{}, its preallocated tensor is {}{}", i, name,
                         heddle::name(output.desc.dtype), str(output.desc.sizes),
                         heddle::name(given.dtype), str(given.sizes));
  HEDDLE_USER_CHECK_CODE(ShapeMismatch, given.sizes == output.desc.sizes,
                         "output {} (%{}) is {}{}, its preallocated tensor is {}{}", i, name,
                         heddle::name(output.desc.dtype), str(output.desc.sizes),
                         heddle::name(given.dtype), str(given.sizes));
  HEDDLE_USER_CHECK_CODE(
      ShapeMismatch, given.global.empty() || given.global == output.desc.global,
      "output {} (%{}) has the unsharded sizes {}, its preallocated tensor has {}", i, name,
      str(output.desc.global), str(given.global));
  const std::optional<AxisOrder>& order = type.tensor.layout.required;
  HEDDLE_USER_CHECK_CODE(
      ShapeMismatch, !order || hasOrder(given, *order),
      "output {} (%{}) must have the memory order {}, its preallocated tensor has the "
      "sizes {} and the strides {}",
      i, name, str(*order), str(given.sizes), str(given.strides));
}

// Finds the memory of each output. A preallocated tensor replaces the buffer of its output if
// landsInPlace() allows this.
void PlanBuilder::bindOutputs() {
  for (size_t i = 0; i < unrolled_.outputs.size(); ++i) {
    Plan::Output output;
    output.scalar = unrolled_.scalar_outputs.at(i);
    if (!output.scalar.valid()) {
      output.address = addressOf(unrolled_.outputs[i]);
      output.desc = unrolled_.outputs[i].desc;
      if (output.desc.held) {
        output.buffer = unrolled_.outputs[i].buffer;
        const int32_t input = unrolled_.buffers.at(unrolled_.outputs[i].buffer).input;
        output.input = isByValue(input) ? -1 : input;
      }
    }
    plan_->outputs.push_back(output);
  }
  for (size_t i = 0; i < plan_->outputs.size(); ++i) {
    if (i >= given_.preallocated.size() || !given_.preallocated[i]) continue;
    Plan::Output& output = plan_->outputs[i];
    const TensorDesc& given = *given_.preallocated[i];
    checkPreallocated(i, given);
    if (!output.desc.held) continue;
    output.preallocated = true;
    if (!landsInPlace(output, given)) continue;
    substituted_[bufferOf(output.address.pointer)] = true;
    plan_->preallocated.push_back({output.address.pointer, static_cast<int32_t>(i),
                                   outputName(program_, i), given.allocBytes(),
                                   allocationOf(given)});
    setAlignment(output.address.pointer, given_.output_alignments, i);
  }
}

// Emits copies to the preallocated tensors that the program could not write directly. Also stores
// the descriptors with which each run checks that the tensors of the caller do not overlap.
void PlanBuilder::finishOutputs() {
  for (size_t i = 0; i < plan_->outputs.size(); ++i) {
    const Plan::Output& output = plan_->outputs[i];
    if (!output.preallocated) continue;
    const auto in_place = [&](const Plan::Preallocated& p) {
      return p.output == static_cast<int>(i);
    };
    if (std::any_of(plan_->preallocated.begin(), plan_->preallocated.end(), in_place)) continue;
    const PointerIndex pointer = plan_->preallocatedPointer(i);
    const TensorDesc& given = *given_.preallocated[i];
    plan_->preallocated.push_back({pointer, static_cast<int32_t>(i), outputName(program_, i),
                                   given.allocBytes(), allocationOf(given)});
    setAlignment(pointer, given_.output_alignments, i);
    emitCopy({{pointer, 0}, given}, {output.address, output.desc}, kCallerStream);
  }
  if (plan_->has_exclusive_input || !plan_->preallocated.empty()) {
    for (const TensorDesc& desc : unrolled_.input_descs) {
      plan_->input_allocations.push_back(allocationOf(desc));
    }
  }
}

}  // namespace heddle::host
