#include "host/run/bind_run.h"

#include <fmt/format.h>

#include <string_view>

#include "host/run/input_overlap.h"
#include "host/unroll/overlap.h"
#include "ir/base/check.h"
#include "ir/types/exact_scalar.h"

namespace heddle::host {
namespace {

// Returns the value of a late input. If the caller passes no value, returns the default.
int64_t lateValue(const Plan& plan, const std::vector<Argument>& inputs, int32_t input) {
  if (static_cast<size_t>(input) < inputs.size()) {
    const auto* tensor = std::get_if<Tensor>(&inputs[input]);  // a tensor without axes on the host
    return toInt(tensor == nullptr ? std::get<Scalar>(inputs[input])
                                   : loadElement(tensor->data, tensor->desc.dtype, 0));
  }
  for (const Plan::ScalarInput& scalar : plan.scalar_inputs) {
    if (scalar.input == input) return toInt(scalar.default_value);
  }
  HEDDLE_CHECK(false, "input {} has no value", input);
}

// Computes the addresses that depend on late inputs. If such an address is in a buffer that the run
// allocates, the AllocateStep of this buffer computes the address again.
void bindLate(const Plan& plan, const std::vector<Argument>& inputs, RunState& state) {
  for (size_t i = 0; i < plan.late_pointers.size(); ++i) {
    state.late_offsets[i] = 0;
    for (const View::LateTerm& term : plan.late_pointers[i].terms) {
      state.late_offsets[i] += term.bytes * lateValue(plan, inputs, term.input);
    }
    state.setLatePointers(plan.late_pointers[i].base);
  }
}

// The memory of a tensor of the caller.
struct CallerMemory {
  const std::byte* begin;
  int64_t bytes;
  const TensorDesc& allocation;  // all elements, with padding, because a run may write the padding
  const std::byte* end() const { return begin + bytes; }
};

// Returns whether two tensors share an element in memory, as far as the strides show this
// (sharingOf()). Allocates no memory.
Sharing memorySharing(const CallerMemory& a, const CallerMemory& b) {
  if (a.end() <= b.begin || b.end() <= a.begin) return Sharing::Nothing;
  return sharingOf({a.allocation, 0}, {b.allocation, b.begin - a.begin});
}

// Calls visit(address) for each preallocated output and each input in memory.
template <class Visit>
void forEachAddress(const Plan& plan, const RunState& state, const Visit& visit) {
  for (const Plan::Preallocated& output : plan.preallocated) visit(state.pointers[output.pointer]);
  for (const Plan::BufferInput& input : plan.buffer_inputs) visit(state.pointers[input.pointer]);
}

// Returns whether all addresses equal those that checkOverlap() has accepted last for this plan and
// `state`.
bool hasAcceptedAddresses(const Plan& plan, const RunState& state) {
  size_t i = 0;
  bool equal = state.apart_outputs.size() == plan.preallocated.size() + plan.buffer_inputs.size();
  forEachAddress(plan, state, [&](const std::byte* address) {
    equal = equal && state.apart_outputs[i++] == address;
  });
  return equal;
}

// Throws UserError unless `sharing` shows that a preallocated output shares no element with another
// tensor. `sharing` is the result of memorySharing(). `other` names the other tensor in the error.
void requireApart(const Plan::Preallocated& output, Sharing sharing, std::string_view other) {
  HEDDLE_USER_CHECK(sharing != Sharing::Bytes,
                    "preallocated output {} (%{}) overlaps the memory of {}", output.output,
                    output.name, other);
  HEDDLE_USER_CHECK(sharing != Sharing::Unknown,
                    "preallocated output {} (%{}): its memory range overlaps that of {}, and its "
                    "strides do not show that no element is in both",
                    output.output, output.name, other);
}

// Rejects preallocated outputs that overlap inputs or each other. Otherwise the program could write
// an output before it has read an input in the same memory. Exception: an output that is copied to
// the caller's tensor after all inputs were read may overlap inputs, except donated inputs and
// inputs that the run writes. A repeated run with the same addresses is not checked again.
void checkOverlap(const Plan& plan, RunState& state) {
  if (plan.preallocated.empty() || hasAcceptedAddresses(plan, state)) return;
  for (const Plan::Preallocated& output : plan.preallocated) {
    const bool is_copied = !plan.buffers.has(bufferOf(output.pointer));
    const CallerMemory mine{state.pointers[output.pointer], output.bytes, output.allocation};
    for (const Plan::Preallocated& earlier : plan.preallocated) {
      if (&earlier == &output) break;
      const Sharing sharing =
          memorySharing(mine, {state.pointers[earlier.pointer], earlier.bytes, earlier.allocation});
      if (sharing == Sharing::Nothing) continue;
      requireApart(output, sharing,
                   fmt::format("preallocated output {} (%{})", earlier.output, earlier.name));
    }
    for (const Plan::BufferInput& input : plan.buffer_inputs) {
      if (is_copied && !input.written && !input.donated) continue;
      const Buffer& buffer = plan.buffers[bufferOf(input.pointer)];
      const Sharing sharing =
          memorySharing(mine, {state.pointers[input.pointer], buffer.bytes,
                               plan.input_allocations[static_cast<size_t>(input.input)]});
      if (sharing == Sharing::Nothing) continue;
      requireApart(output, sharing, fmt::format("input {} (%{})", input.input, buffer.name));
    }
  }
  state.apart_outputs.clear();
  forEachAddress(plan, state, [&](std::byte* address) { state.apart_outputs.push_back(address); });
}

}  // namespace

void bindRun(const Plan& plan, const std::vector<Argument>& inputs,
             const std::vector<Tensor>& preallocated, RunState& state) {
  for (const Plan::BufferInput& input : plan.buffer_inputs) {
    const Tensor& tensor = std::get<Tensor>(inputs[input.input]);
    const Buffer& buffer = plan.buffers[bufferOf(input.pointer)];
    HEDDLE_USER_CHECK(tensor.data != nullptr || buffer.bytes == 0, "input {} (%{}) has no data",
                      input.input, buffer.name);
    state.owned_memory.check(tensor.data, "input", input.input, buffer.name);
    state.pointers[input.pointer] = static_cast<std::byte*>(tensor.data);
  }
  for (const Plan::ValueInput& input : plan.value_inputs) {
    const Tensor& tensor = std::get<Tensor>(inputs[input.input]);
    HEDDLE_USER_CHECK(tensor.data != nullptr, "input {} has no data", input.input);
    state.registers[input.out] = loadElement(tensor.data, input.dtype, 0);
  }
  for (const Plan::ScalarInput& input : plan.scalar_inputs) {
    const size_t position = input.input;
    const Scalar& value =
        position < inputs.size() ? std::get<Scalar>(inputs[position]) : input.default_value;
    if (const std::string why = whyNotScalar(input.dtype, value); !why.empty()) {
      userErrorWith(ErrorCode::Type, "input {} (%{}) of type {} {}", input.input, input.name,
                    name(input.dtype), why);
    }
    state.registers[input.out] = roundTo(input.dtype, value);
  }
  for (const Plan::Preallocated& output : plan.preallocated) {
    const Tensor& tensor = preallocated[output.output];
    state.owned_memory.check(tensor.data, "preallocated output", output.output, output.name);
    state.pointers[output.pointer] = static_cast<std::byte*>(tensor.data);
  }
  if (plan.has_exclusive_input) checkInputOverlap(plan, state);
  bindLate(plan, inputs, state);
  checkOverlap(plan, state);
}

}  // namespace heddle::host
